/* A recording: what every reader of signals ends in.
 *
 * Header first: opening reads no samples.  A recording is a list of contiguous segments; a window lies in one of them and
 * nothing works across a join.  Channels keep their native rate.  "Unknown" is a value of its own, never a default. */
#ifndef SN_MODALITIES_RECORDING_H
#define SN_MODALITIES_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/stream.h"
#include "core/token_batch.h"

enum { SN_CHANNEL_NAME = 96, SN_UNIT_NAME = 24 };

/* Where a position is stated. HEAD: x to the right ear point, y to the nasion, z up, origin between the ear points (Neuromag).
 * DEVICE: the helmet's own; tokens are never made from it. */
typedef enum sn_frame { SN_FRAME_NONE = 0, SN_FRAME_HEAD, SN_FRAME_DEVICE } sn_frame;
typedef enum sn_position_from {
  SN_POSITION_UNKNOWN = 0,
  SN_POSITION_FILE,    /* measured, in the recording's own files */
  SN_POSITION_SIDECAR, /* measured, in electrodes.tsv or the like */
  SN_POSITION_LAYOUT,  /* computed from the channel's name */
  SN_POSITION_MIDPOINT /* of a bipolar pair */
} sn_position_from;

typedef struct sn_channel {
  char name[SN_CHANNEL_NAME];      /* cleaned */
  char raw_name[SN_CHANNEL_NAME];  /* as in the file, UTF-8 */
  sn_sensor_kind kind;
  char unit[SN_UNIT_NAME];         /* canonical unit of the values that read() gives: "mV", "uV", "fT", "" unknown */
  char raw_unit[SN_UNIT_NAME];     /* as in the file */
  bool unit_assumed;               /* the format's documented default was taken */
  int64_t samples_per_frame;       /* native rate = frame rate x this */
  double gain, baseline;           /* stored = value_in_raw_unit * gain + baseline (WFDB) */
  double unit_scale;               /* canonical = raw unit * unit_scale */
  double sidecar_scale;            /* a sidecar named unit or type: what the reader gives is multiplied by this; 0: none */
  bool calibration_assumed;        /* gain, or baseline, was not stated */
  bool uncalibrated;               /* physical values are refused (SN_E_UNSUPPORTED) */
  bool no_calibration;             /* they stay refused whatever unit is stated elsewhere (an empty range, a gain of 0, a
                                      trigger word): only the reader sets it, nothing clears it */
  bool bad;
  bool has_position, has_orientation;
  double position_m[3];            /* metres, in `frame` */
  double orientation[3];           /* unit vector: coil normal of magnetometers and axial gradiometers, direction of the
                                      difference (ex) of planar ones */
  sn_frame frame;
  sn_position_from position_from;
  int32_t coil_type;               /* FIFF code (MEG): 3012 planar, 3022, 3024 magnetometer, 5001 axial CTF, ...; 0: none */
} sn_channel;

/* A contiguous stretch. Sample k of channel c in this segment is at start_s + (k + skew-free) / rate(c). */
typedef struct sn_segment {
  double start_s;     /* from the start of the recording; gaps are what lies between segments */
  int64_t start_frame;/* the same in frames of the recording's own time axis, gaps counted */
  int64_t n_frames;   /* channel c has n_frames * samples_per_frame samples here */
} sn_segment;

typedef struct sn_annotation {
  int64_t sample;     /* in frames (or the annotation file's own rate, see onset_s) from the start of the recording */
  double onset_s;
  double duration_s;  /* NaN: unknown */
  int32_t channel;    /* -1: all */
  int32_t subtype, number; /* WFDB fields; 0 elsewhere */
  char code[16];      /* short mark: "N", "V", "+", ... */
  char *text;         /* auxiliary text or description, UTF-8; NULL none; owned by the list */
} sn_annotation;

typedef struct sn_warning {
  char code[32];      /* stable name: "gain_absent", "initial_value", ... */
  char where[96];
  char message[192];
  int64_t count;      /* how often this code came up; the first occurrence is described */
} sn_warning;

typedef struct sn_annotations {
  int64_t n;
  sn_annotation *items;
  double rate;        /* ticks of `sample` per second */
  int64_t n_warnings; /* what was repaired or left out while reading them */
  sn_warning *warnings;
} sn_annotations;
void sn_annotations_destroy(sn_annotations *list); /* accepts NULL */
SN_MUST_CHECK sn_status sn_annotations_copy(const sn_annotations *list, sn_annotations **out, sn_error *err);
/* Adds one at the end; text (copied) may be NULL. capacity: of items, kept by the caller, 0 at first. */
SN_MUST_CHECK sn_status sn_annotations_add(sn_annotations *list, int64_t *capacity, const sn_annotation *item,
                                           const char *text, sn_error *err);

/* A fact of the file that has no field of its own: "highpass_hz" "0.1", "projectors" "PCA-v1 off". Nothing private. */
typedef struct sn_note {
  char name[32];
  char value[224];
} sn_note;

typedef struct sn_recording sn_recording;

typedef struct sn_recording_vtable {
  /* values (count) in the channel's unit, float64, missing samples NaN. first counts samples of that channel within the
   * segment. Fewer than count is never returned: SN_E_ARGUMENT when the range is not inside the segment. Thread-safe. */
  sn_status (*read)(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first, int64_t count,
                    double *values, sn_error *err);
  /* The same for several channels over the same frames: values[i] has n_frames * samples_per_frame of channels[i]. NULL:
   * channel by channel. Thread-safe. */
  sn_status (*read_channels)(const sn_recording *recording, const int64_t *channels, int64_t n_channels, int64_t segment,
                             int64_t first_frame, int64_t n_frames, double *const *values, sn_error *err);
  /* The stored integers, missing samples INT32_MIN; NULL if the format stores none. Where segments have calibrations
   * of their own (WFDB), these integers are in the segment's, while read() always gives the channel's unit. */
  sn_status (*read_stored)(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                           int64_t count, int32_t *stored, sn_error *err);
  /* All annotations inside the recording (EDF: those before its start or in a gap as well), in time order; a fresh list.
   * which: the annotator (WFDB: file extension); NULL: the usual one ("atr"), and an empty list when there is none. NULL
   * function: the format has none. */
  sn_status (*annotations)(const sn_recording *recording, const char *which, sn_annotations **out, sn_error *err);
  /* Reads everything once and checks stated checksums; SN_E_CORRUPT names the channel. NULL: nothing to check. */
  sn_status (*verify)(const sn_recording *recording, sn_error *err);
  void (*destroy)(sn_recording *recording);
} sn_recording_vtable;

struct sn_recording {
  const sn_recording_vtable *vtable;
  void *self;
  sn_folder *folder; /* the folder sn_recording_open made, closed after destroy(); NULL when the caller opened it */
  char format[24], variant[48];    /* "wfdb", "212" */
  char modality[24];               /* "ecg", "eeg", ... as far as the header tells; "" unknown */
  char subject_id[64];             /* "" unknown; never a name */
  double age_years;                /* NaN unknown */
  char sex[8];                     /* "F", "M", "" unknown */
  char start_time[40];             /* ISO, "" unknown; shown only with --dates */
  char reference[64];              /* of the EEG channels as the file states it; "" unknown */
  double line_hz;                  /* frequency of the mains as the file states it; NaN unknown */
  int64_t rate_num, rate_den;      /* frames per second, reduced */
  bool annotations_alone;          /* no channel and no segment, by the file's intention: see allow_no_signal */
  int64_t n_channels, n_segments, n_warnings;
  sn_channel *channels;
  sn_segment *segments;
  sn_warning *warnings;
  int64_t n_files;
  char **files;                    /* names, beside the one that was opened, of the files it consists of: header first, then
                                      segment headers and signal files in the order of first mention; no annotations */
  int64_t n_file_slots;            /* of the hash table behind sn_recording_add_file */
  int64_t *file_slots;             /* index + 1 into files, 0 free */
  sn_annotations *events;          /* stated beside the recording (events.tsv), instead of its own; NULL: none; owned */
  int64_t n_comments;
  char **comments;                 /* header comment lines without their mark, UTF-8; may hold private text: never printed */
  int64_t n_notes;
  sn_note *notes;                  /* names are unique */
};

typedef struct sn_open_options {
  bool tolerant;            /* truncated or contradicting data: read what is sound, list each repair as a warning */
  const char *assume_unit;  /* for channels without one, or NULL */
  bool allow_no_signal;     /* open files that hold annotations alone: no channel, no segment, rate 0/1 */
  double assume_rate_hz;    /* of the fastest channel where the file cannot tell it (EDF record duration 0); 0: none */
} sn_open_options;

/* One per file format, listed in modalities/formats/formats.def as SN_FORMAT(name): sn_format_NAME. */
typedef struct sn_format {
  const char *name;
  const char *extensions;   /* " .hea .dat " hints for error messages only: content decides */
  const char *with_sidecar; /* " .csv .npy " files that are recordings of it with a sidecar alone; NULL: none */
  /* 0: not mine ... 100: certain. head: first n (<= 1024) bytes of the file `name` standing in `folder`. */
  int (*sniff)(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder);
  /* Opens `name` in `folder`, which the recording borrows: it must live until sn_recording_destroy. A reader fills a
   * recording from sn_recording_create, and destroys it on failure. options is never NULL here. */
  sn_status (*open)(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                    sn_error *err);
  const char *folder;       /* ".ds": a folder of such a name is one recording, and what is in it has none of its own; NULL */
  const char *entry;        /* ".res4": the file in it that is opened */
  bool experimental;        /* built from its definition alone: no file of its own software was at hand */
} sn_format;

/* What sniff gives to a table whose sidecar is there and is not one: it is opened to say what is wrong, unless the sidecar
 * belongs to a recording of another format beside it. Anything that knows the file's content gives more. */
enum { SN_SNIFF_SIDECAR = 1 };

extern const sn_format *const sn_formats[];
extern const int64_t sn_n_formats;
/* Whether a file of that name would be a recording if a sidecar stood beside it (docs/formats/array.md). */
bool sn_recording_needs_sidecar(const char *name);

/* A recording that is a folder of its own (sn_format.folder): *entry is the file in it that is opened, in a fresh
 * string; NULL where path is no such folder. SN_E_FORMAT where the folder holds no entry, or several and none of the
 * folder's own name. */
SN_MUST_CHECK sn_status sn_recording_entry(const char *path, char **entry, sn_error *err);
/* The same by name alone: the length of "a/x.ds" in "a/x.ds/y/z", the outermost such folder on the way to a file; 0
 * where there is none. *format (may be NULL): whose it is. */
int64_t sn_recording_folder(const char *path, const sn_format **format);

/* The field of an SN_E_UNSUPPORTED error about a sound file that is no recording and stands beside them (averages, events,
 * covariances, transforms, ...): an index does not list it. */
#define SN_FIELD_NO_RECORDING "no recording"
/* Sniffs and opens a path: a file, or a folder that is a recording. For a file that belongs to a header beside it (x.dat,
 * x.mat of x.hea) the header is opened.
 * Zero samples, zero channels are SN_E_CORRUPT; annotations without a signal are SN_E_UNSUPPORTED, unless
 * allow_no_signal. options may be NULL (strict). */
SN_MUST_CHECK sn_status sn_recording_open(const char *path, const sn_open_options *options, sn_recording **out,
                                          sn_error *err);
void sn_recording_destroy(sn_recording *recording); /* accepts NULL */

/* For readers: an empty recording (age NaN, rate 0/1) and room for its channels. vtable->destroy frees `self` only. */
SN_MUST_CHECK sn_status sn_recording_create(const sn_recording_vtable *vtable, const char *format, void *self,
                                            sn_recording **out, sn_error *err);
/* The same for a reader of one file: opens it into *stream (which `self` holds and vtable->destroy closes) and notes it.
 * `self` belongs to the recording from the call on, also when it fails: vtable->destroy has released it then. */
SN_MUST_CHECK sn_status sn_recording_create_file(const sn_recording_vtable *vtable, const char *format, void *self,
                                                 const sn_folder *folder, const char *name, sn_stream **stream,
                                                 sn_recording **out, sn_error *err);
/* For readers: one more of recording->files (copied); a name that is there already is left as it is. */
SN_MUST_CHECK sn_status sn_recording_add_file(sn_recording *recording, const char *name, sn_error *err);
SN_MUST_CHECK sn_status sn_recording_set_channels(sn_recording *recording, int64_t n, sn_error *err);
/* For readers: one more note, or another value of one that is there. A value that is too long is cut. */
SN_MUST_CHECK sn_status sn_recording_note(sn_recording *recording, const char *name, sn_error *err, const char *format, ...)
    SN_PRINTF(4, 5);

SN_MUST_CHECK sn_status sn_recording_read(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                                          int64_t count, double *values, sn_error *err);
/* Several channels over the same frames, bit-equal to reading each: values[i] (n_frames * samples_per_frame of channels[i]).
 * The way to read a window of many channels: files that interleave them are read once. */
SN_MUST_CHECK sn_status sn_recording_read_channels(const sn_recording *recording, const int64_t *channels,
                                                   int64_t n_channels, int64_t segment, int64_t first_frame,
                                                   int64_t n_frames, double *const *values, sn_error *err);
/* SN_E_UNSUPPORTED when the format stores none. */
SN_MUST_CHECK sn_status sn_recording_read_stored(const sn_recording *recording, int64_t channel, int64_t segment,
                                                 int64_t first, int64_t count, int32_t *stored, sn_error *err);
/* An empty list when the format has none. which NULL: recording->events where there are any. */
SN_MUST_CHECK sn_status sn_recording_annotations(const sn_recording *recording, const char *which, sn_annotations **out,
                                                 sn_error *err);
int64_t sn_recording_find_channel(const sn_recording *recording, const char *name); /* by cleaned name; -1 */
int64_t sn_recording_samples(const sn_recording *recording, int64_t channel, int64_t segment); /* segment -1: all */
double sn_recording_rate(const sn_recording *recording, int64_t channel);                      /* Hz */
/* An event stated beside the recording (onset_s, duration_s): sets its sample. What begins at or after the end, or before
 * 0 with nothing of it within, is not to be kept; what begins before 0 and reaches in is. Both are warned of,
 * "annotation_beyond_end" and "annotation_before_start"; `source` is the file that states it. */
SN_MUST_CHECK sn_status sn_recording_place_event(sn_recording *recording, const char *source, sn_annotation *event,
                                                 bool *keep, sn_error *err);
double sn_recording_duration(const sn_recording *recording);                                   /* seconds of data */
SN_MUST_CHECK sn_status sn_recording_warn(sn_recording *recording, const char *code, const char *where, sn_error *err,
                                          const char *format, ...) SN_PRINTF(5, 6);
/* The same on any list: a code that is there already is only counted. */
SN_MUST_CHECK sn_status sn_warning_add(sn_warning **list, int64_t *n, const char *code, const char *where, sn_error *err,
                                       const char *format, ...) SN_PRINTF(6, 7);

/* Canonical units. Fills unit and scale (canonical = raw * scale) for a raw unit and a sensor kind; false when
 * the unit is not known, and then unit is "". Voltages: mV for ECG and EMG, uV for EEG, EOG, ECoG; fT and fT/cm for MEG;
 * mmHg for pressure; degC for temperature; NU is known for every kind; other kinds keep any unit as stored. */
bool sn_unit_canonical(const char *raw, sn_sensor_kind kind, char unit[SN_UNIT_NAME], double *scale);
/* Whether the unit is one of any kind: other kinds keep also what is none. */
bool sn_unit_is_known(const char *raw);
const char *sn_sensor_kind_name(sn_sensor_kind kind); /* "ecg", "eeg", ... */

#endif
