/* Between the files of the WFDB reader: the parsed header, the packing codecs, signal files. Not for others. */
#ifndef SN_MODALITIES_WFDB_PARTS_H
#define SN_MODALITIES_WFDB_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"
#include "modalities/formats/wfdb/wfdb.h"

/* ---- header(5) ---- */

enum { WFDB_NAME = 256 };

typedef struct wfdb_header_signal {
  char file[WFDB_NAME];   /* "~": no file */
  int format;
  int64_t samples_per_frame, skew, byte_offset;
  double gain, baseline;
  bool gain_stated, baseline_stated, unit_stated, initial_stated, checksum_stated, offset_stated;
  char unit[SN_UNIT_NAME];
  int64_t adc_bits, adc_zero, initial, block_size;
  uint16_t checksum;      /* modulo 2^16; stated and not 0, or checksum_stated is false */
  char name[SN_CHANNEL_NAME]; /* description, trimmed, UTF-8 */
  int64_t line;           /* in the header file, from 1 */
} wfdb_header_signal;

typedef struct wfdb_header_segment {
  char record[WFDB_NAME]; /* "~": a gap */
  int64_t n_samples;
  int64_t line;
} wfdb_header_segment;

typedef struct wfdb_header {
  char file[WFDB_NAME];   /* "100.hea" */
  char record[WFDB_NAME];
  bool multi_segment;
  int64_t n_segments, n_signals;
  int64_t rate_num, rate_den; /* frames per second */
  bool rate_stated, utf8_assumed_latin1;
  double counter_frequency, base_counter; /* 0: as the frame rate */
  int64_t n_samples;      /* frames; 0: not stated */
  char start_time[40];    /* ISO, "" unknown */
  bool start_time_odd;    /* something stands there that is no time and date */
  bool surplus_lines;     /* signal or segment lines beyond the count */
  wfdb_header_signal *signals;   /* (n_signals), NULL when multi_segment */
  wfdb_header_segment *segments; /* (n_segments) when multi_segment */
  int64_t n_comments;
  char **comments;        /* UTF-8, without '#', trimmed */
} wfdb_header;

/* Parses `n` bytes of `file`. SN_E_FORMAT when nothing looks like a record line, else SN_E_CORRUPT with line and field. */
SN_MUST_CHECK sn_status sn_wfdb_header_parse(const char *text, int64_t n, const char *file, wfdb_header **out,
                                             sn_error *err);
SN_MUST_CHECK sn_status sn_wfdb_header_load(const sn_folder *folder, const char *file, wfdb_header **out, sn_error *err);
void sn_wfdb_header_destroy(wfdb_header *header);
/* Whether the first meaningful line of `head` reads as a record line (for sniffing; head may end anywhere). */
bool sn_wfdb_looks_like_header(const uint8_t *head, int64_t n);
/* Date and time fields (tokens may be in either order; several spellings of dates) into ISO; false: not understood. */
bool sn_wfdb_parse_start(const char *first, const char *second, char iso[40]);

/* Cleaned name, kind of sensor, of a signal description. */
void sn_wfdb_identify(const char *raw, const char *unit, char name[SN_CHANNEL_NAME], sn_sensor_kind *kind);

/* ---- signal(5) ---- */

typedef enum wfdb_storage { WFDB_PACKED, WFDB_DIFFERENCES, WFDB_FLAC, WFDB_NOTHING } wfdb_storage;

/* Decodes samples first, first + stride, ... (run consecutive ones each time, `n` samples in all, run divides n) of a
 * packed sequence whose sample 0 begins at bytes[0]. Missing samples are INT32_MIN. */
typedef void (*wfdb_decode)(const uint8_t *bytes, int64_t first, int64_t stride, int64_t run, int64_t n, int32_t *out);

typedef struct wfdb_codec {
  int format;
  wfdb_storage storage;
  int bits;                  /* width of a sample */
  int group_samples, group_bytes;
  int partial_bytes[3];      /* bytes of a last group that holds i samples, i < group_samples */
  bool has_missing;
  int32_t lowest;            /* the missing mark */
  wfdb_decode decode;        /* WFDB_PACKED */
} wfdb_codec;

const wfdb_codec *sn_wfdb_codec(int format); /* NULL: unknown */
/* Bytes that n samples take (false: beyond int64), and whole samples in n bytes. */
bool sn_wfdb_codec_bytes(const wfdb_codec *codec, int64_t n_samples, int64_t *bytes);
int64_t sn_wfdb_codec_samples(const wfdb_codec *codec, int64_t bytes);

/* One signal file (signals of a record that share it lie interleaved, a frame at a time). */
typedef struct wfdb_flac wfdb_flac;
typedef struct wfdb_file {
  char *name;
  const sn_folder *folder;   /* borrowed */
  const wfdb_codec *codec;
  sn_stream *stream;         /* kept open, or NULL: opened for each read (records of many pieces) */
  int64_t byte_offset, size;
  int64_t n_signals;
  int64_t frame_samples;     /* samples in a frame, over all signals */
  int64_t n_frames;          /* frames that are read: whole frames in the file, at most the header's count */
  bool truncated;            /* fewer than the header's count (tolerant only): its checksums cannot hold */
  int64_t *offsets;          /* (n_signals) of each signal's samples in the frame */
  int64_t *per_frame;        /* (n_signals) */
  int64_t *initial;          /* (n_signals) format 8 starts from these */
  pthread_mutex_t lock;      /* of what follows */
  bool lock_ready;
  int32_t *checkpoints;      /* format 8: (blocks, n_signals) values before each block of frames, built on first use */
  wfdb_flac *flac;
} wfdb_file;

/* Samples [first, first + n) of signal `index` of the file, which must lie inside its n_frames * per_frame. stored (n).
 * Thread-safe. */
SN_MUST_CHECK sn_status sn_wfdb_file_read(wfdb_file *file, int64_t index, int64_t first, int64_t n, int32_t *stored,
                                          sn_error *err);
/* Frames of several signals, each byte read once: out[i] (n_frames * per_frame of indices[i]) for the frames
 * [first_frame, first_frame + *n_frames), where *n_frames [in/out] is cut down to what one read covers. Only for packed
 * formats whose frame fits in a read: sn_wfdb_file_can_interleave. Thread-safe. */
SN_MUST_CHECK sn_status sn_wfdb_file_read_frames(const wfdb_file *file, const int64_t *indices, int64_t n_indices,
                                                 int64_t first_frame, int64_t *n_frames, int32_t *const *out,
                                                 sn_error *err);
bool sn_wfdb_file_can_interleave(const wfdb_file *file);
void sn_wfdb_file_free(wfdb_file *file); /* what it holds, not itself */

/* ---- a contiguous piece of a record: what one header without segments describes ---- */

typedef struct wfdb_signal {
  int64_t file, index;      /* in the piece's files, and in that file */
  int64_t skew;             /* frames */
  double gain, baseline, scale; /* value = (stored - baseline) / gain * scale */
  uint16_t checksum;
  bool checksum_stated;
} wfdb_signal;

typedef struct wfdb_piece {
  int64_t start_frame;      /* on the record's time axis, gaps counted */
  int64_t n_frames;
  int64_t n_files, n_signals;
  wfdb_file *files;
  wfdb_signal *signals;
  int64_t *channels;        /* (channels of the recording) the signal of each, -1: absent here */
} wfdb_piece;

typedef struct wfdb_context {
  const sn_folder *folder;
  bool tolerant, keep_open;
  sn_recording *recording;  /* takes warnings and file names */
} wfdb_context;

/* Opens the signal files of `header`, checks them against it and against `announced` frames (0: unknown), and fills files,
 * signals (without scale) and n_frames. */
SN_MUST_CHECK sn_status sn_wfdb_piece_attach(const wfdb_context *context, const wfdb_header *header, int64_t announced,
                                             wfdb_piece *piece, sn_error *err);
/* Samples [first, first + n) of a signal of the piece after its skew; INT32_MIN where there are none. Thread-safe. */
SN_MUST_CHECK sn_status sn_wfdb_piece_read(wfdb_piece *piece, int64_t signal, int64_t first, int64_t n, int32_t *stored,
                                           sn_error *err);
/* Compares stated checksums; SN_E_CORRUPT names the signal. */
SN_MUST_CHECK sn_status sn_wfdb_piece_verify(wfdb_piece *piece, const sn_recording *recording, sn_error *err);
void sn_wfdb_piece_free(wfdb_piece *piece); /* what it holds, not itself */

/* FLAC (508, 516, 524): one FLAC channel a signal; all signals of a file have the same number of samples in a frame.
 * Without libFLAC opening is SN_E_UNSUPPORTED. The stream is borrowed. n_samples 0: the file does not say. */
SN_MUST_CHECK sn_status sn_wfdb_flac_open(const sn_stream *stream, const wfdb_codec *codec, wfdb_flac **out,
                                          int64_t *n_channels, int64_t *n_samples, sn_error *err);
/* out (n): samples [first, first + n) of one FLAC channel. Not thread-safe: the caller locks. */
SN_MUST_CHECK sn_status sn_wfdb_flac_read(wfdb_flac *flac, int64_t channel, int64_t first, int64_t n, int32_t *out,
                                          sn_error *err);
void sn_wfdb_flac_close(wfdb_flac *flac);

#endif
