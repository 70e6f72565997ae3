/* Between the files of the XDF reader. Not for others. */
#ifndef SN_MODALITIES_XDF_PARTS_H
#define SN_MODALITIES_XDF_PARTS_H

#include "modalities/formats/sample_grid.h"
#include "modalities/formats/xdf/xdf.h"

typedef struct xdf_channel {
  char label[SN_CHANNEL_NAME], unit[SN_UNIT_NAME], type[32];
} xdf_channel;

typedef struct xdf_text {
  int64_t sample; /* of its stream */
  char *text;
} xdf_text;

typedef struct xdf_stream {
  uint32_t id;
  char name[64], type[32];
  int64_t n_channels;
  double rate;         /* nominal; 0: irregular */
  bool is_text, known; /* known: the number format is one that is read */
  sn_grid_type format;
  int64_t n_samples, footer_samples;   /* -1: no footer */
  int64_t n_described, described_room; /* channels of the header's description */
  xdf_channel *described;
  double *stamps; /* (n_samples) */
  int64_t stamp_room;
  int64_t n_offsets, offset_room;
  double *offsets; /* (n_offsets, 2) measurement time, offset */
  uint8_t *data;   /* numbers of the main stream */
  int64_t n_texts, text_room;
  xdf_text *texts;
} xdf_stream;

typedef struct xdf_file {
  const char *name;
  const uint8_t *bytes;
  int64_t n;
  bool tolerant;
  int64_t n_streams, stream_room;
  xdf_stream *streams;
} xdf_file;

/* Headers, footers, offsets, stamps, texts and counts of every stream. end [out]: what may be read (tolerant: up to the
 * first damaged chunk). */
SN_MUST_CHECK sn_status sn_xdf_scan(xdf_file *file, sn_recording *recording, int64_t *end, sn_error *err);
/* The numbers of one stream into stream->data. */
SN_MUST_CHECK sn_status sn_xdf_load_numbers(const xdf_file *file, int64_t end, xdf_stream *stream, sn_error *err);
/* Stamps of a stream on the recorder's clock. */
SN_MUST_CHECK sn_status sn_xdf_correct_stamps(xdf_stream *stream, sn_error *err);
void sn_xdf_free(xdf_file *file); /* what it holds */

#endif
