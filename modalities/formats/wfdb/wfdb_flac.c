/* FLAC signal files, formats 508, 516 and 524, through libFLAC reading from a stream.
 *
 * The decoder has one position. It is moved only when a window does not follow the last one, and the last decoded window
 * of all channels is kept: signals are read one after the other, and the decoder always makes all of them. */
#include "modalities/formats/wfdb/wfdb_parts.h"

#include "core/alloc.h"

#ifndef SONDE_HAVE_FLAC

sn_status sn_wfdb_flac_open(const sn_stream *stream, const wfdb_codec *codec, wfdb_flac **out, int64_t *n_channels,
                            int64_t *n_samples, sn_error *err) {
  return sn_fail(err, SN_E_UNSUPPORTED,
                 "'%s' is of WFDB signal format %d (FLAC), and this build is without libFLAC; install libflac-dev and "
                 "configure again",
                 sn_stream_name(stream), codec->format);
}
sn_status sn_wfdb_flac_read(wfdb_flac *flac, int64_t channel, int64_t first, int64_t n, int32_t *out, sn_error *err) {
  return sn_fail(err, SN_E_UNSUPPORTED, "this build is without libFLAC");
}
void sn_wfdb_flac_close(wfdb_flac *flac) {}

#else

#include <FLAC/stream_decoder.h>
#include <string.h>

enum { MAX_CHANNELS = 8, WINDOW_SAMPLES = 1 << 18 }; /* kept window: over all channels */

struct wfdb_flac {
  const sn_stream *stream;
  const wfdb_codec *codec;
  FLAC__StreamDecoder *decoder;
  int64_t position;          /* of the next byte the decoder asks for */
  int64_t n_channels, n_samples;
  int bits;
  bool have_info, seek_failed;
  int64_t next;              /* sample that the decoder gives next; -1 unknown */
  sn_status status;          /* of the stream, kept over the decoder's callbacks */
  sn_error error;
  int32_t *window;           /* (n_channels, capacity) samples [window_first, window_first + window_n) */
  int64_t window_first, window_n, capacity;
};

static FLAC__StreamDecoderReadStatus on_read(const FLAC__StreamDecoder *decoder, FLAC__byte buffer[], size_t *bytes,
                                             void *user) {
  wfdb_flac *f = user;
  int64_t got = 0;
  if (*bytes == 0) return FLAC__STREAM_DECODER_READ_STATUS_ABORT;
  sn_status status = sn_stream_read(f->stream, f->position, buffer, (int64_t)*bytes, &got, &f->error);
  if (status != SN_OK && status != SN_END) {
    f->status = status;
    return FLAC__STREAM_DECODER_READ_STATUS_ABORT;
  }
  *bytes = (size_t)got;
  f->position += got;
  return got == 0 ? FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM : FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

static FLAC__StreamDecoderSeekStatus on_seek(const FLAC__StreamDecoder *decoder, FLAC__uint64 offset, void *user) {
  wfdb_flac *f = user;
  if (offset > (FLAC__uint64)sn_stream_size(f->stream)) return FLAC__STREAM_DECODER_SEEK_STATUS_ERROR;
  f->position = (int64_t)offset;
  return FLAC__STREAM_DECODER_SEEK_STATUS_OK;
}

static FLAC__StreamDecoderTellStatus on_tell(const FLAC__StreamDecoder *decoder, FLAC__uint64 *offset, void *user) {
  *offset = (FLAC__uint64)((wfdb_flac *)user)->position;
  return FLAC__STREAM_DECODER_TELL_STATUS_OK;
}

static FLAC__StreamDecoderLengthStatus on_length(const FLAC__StreamDecoder *decoder, FLAC__uint64 *length, void *user) {
  *length = (FLAC__uint64)sn_stream_size(((wfdb_flac *)user)->stream);
  return FLAC__STREAM_DECODER_LENGTH_STATUS_OK;
}

static FLAC__bool on_eof(const FLAC__StreamDecoder *decoder, void *user) {
  wfdb_flac *f = user;
  return f->position >= sn_stream_size(f->stream);
}

static void on_metadata(const FLAC__StreamDecoder *decoder, const FLAC__StreamMetadata *metadata, void *user) {
  wfdb_flac *f = user;
  if (metadata->type != FLAC__METADATA_TYPE_STREAMINFO) return;
  f->n_channels = metadata->data.stream_info.channels;
  f->n_samples = (int64_t)metadata->data.stream_info.total_samples;
  f->bits = (int)metadata->data.stream_info.bits_per_sample;
  f->have_info = true;
}

static void on_error(const FLAC__StreamDecoder *decoder, FLAC__StreamDecoderErrorStatus status, void *user) {
  wfdb_flac *f = user;
  if (f->status == SN_OK)
    f->status = sn_fail_at(&f->error, SN_E_CORRUPT, f->position, -1, NULL, "'%s': damaged FLAC data before byte %lld (%s)",
                           sn_stream_name(f->stream), (long long)f->position,
                           FLAC__StreamDecoderErrorStatusString[status]);
}

/* Keeps what of a decoded block falls into the wanted window. */
static FLAC__StreamDecoderWriteStatus on_write(const FLAC__StreamDecoder *decoder, const FLAC__Frame *frame,
                                               const FLAC__int32 *const buffer[], void *user) {
  wfdb_flac *f = user;
  if (frame->header.channels != (unsigned)f->n_channels || frame->header.bits_per_sample != (unsigned)f->bits) {
    f->status = sn_fail_at(&f->error, SN_E_CORRUPT, f->position, -1, NULL,
                           "'%s': a FLAC block of %u channels and %u bits in a stream of %lld and %d",
                           sn_stream_name(f->stream), frame->header.channels, frame->header.bits_per_sample,
                           (long long)f->n_channels, f->bits);
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  int64_t block = (int64_t)frame->header.blocksize, start = (int64_t)frame->header.number.sample_number;
  int64_t wanted = f->window_first + f->window_n; /* first sample still missing */
  f->next = start + block;
  if (start > wanted || wanted - start >= block) return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
  int64_t skip = wanted - start, n = block - skip;
  if (n > f->capacity - f->window_n) n = f->capacity - f->window_n;
  for (int64_t c = 0; c < f->n_channels; c++) {
    int32_t *to = f->window + c * f->capacity + f->window_n;
    for (int64_t i = 0; i < n; i++) {
      int32_t v = buffer[c][skip + i];
      to[i] = v == f->codec->lowest ? INT32_MIN : v;
    }
  }
  f->window_n += n;
  return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

static sn_status flac_failure(wfdb_flac *f, const char *what, sn_error *err) {
  if (f->status != SN_OK) {
    if (err != NULL) *err = f->error;
    return f->status;
  }
  return sn_fail_at(err, SN_E_CORRUPT, f->position, -1, NULL, "'%s': %s (FLAC decoder: %s)", sn_stream_name(f->stream),
                    what, FLAC__stream_decoder_get_resolved_state_string(f->decoder));
}

sn_status sn_wfdb_flac_open(const sn_stream *stream, const wfdb_codec *codec, wfdb_flac **out, int64_t *n_channels,
                            int64_t *n_samples, sn_error *err) {
  wfdb_flac *f = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&f, 1, sizeof *f, "FLAC decoder", err));
  f->stream = stream;
  f->codec = codec;
  f->next = -1;
  f->decoder = FLAC__stream_decoder_new();
  if (f->decoder == NULL) {
    status = sn_fail(err, SN_E_MEMORY, "no memory for a FLAC decoder");
    goto fail;
  }
  if (FLAC__stream_decoder_init_stream(f->decoder, on_read, on_seek, on_tell, on_length, on_eof, on_write, on_metadata,
                                       on_error, f) != FLAC__STREAM_DECODER_INIT_STATUS_OK) {
    status = sn_fail(err, SN_E_MEMORY, "the FLAC decoder did not start");
    goto fail;
  }
  if (!FLAC__stream_decoder_process_until_end_of_metadata(f->decoder) || !f->have_info) {
    status = flac_failure(f, "this is no FLAC stream", err);
    goto fail;
  }
  if (f->bits != codec->bits || f->n_channels < 1 || f->n_channels > MAX_CHANNELS) {
    status = sn_fail(err, SN_E_CORRUPT, "'%s': format %d wants FLAC samples of %d bits, the stream has %lld channels of %d",
                     sn_stream_name(stream), codec->format, codec->bits, (long long)f->n_channels, f->bits);
    goto fail;
  }
  f->next = 0;
  f->capacity = WINDOW_SAMPLES / f->n_channels;
  if (f->n_samples > 0 && f->n_samples < f->capacity) f->capacity = f->n_samples;
  SN_TRY_GOTO(sn_alloc(&f->window, f->capacity * f->n_channels, sizeof *f->window, "FLAC window", err), fail);
  *n_channels = f->n_channels;
  *n_samples = f->n_samples;
  *out = f;
  return SN_OK;
fail:
  sn_wfdb_flac_close(f);
  return status;
}

/* Fills the window from `first` on, as far as its capacity and the stream go; at least `least` samples or an error. */
static sn_status fill_window(wfdb_flac *f, int64_t first, int64_t least, sn_error *err) {
  f->status = SN_OK;
  f->window_first = first;
  f->window_n = 0;
  if (f->next < 0 || first < f->next || first - f->next > 65536) {
    /* Seeking decodes the block that holds `first` and writes it from that sample on. */
    f->next = -1;
    if (!FLAC__stream_decoder_seek_absolute(f->decoder, (FLAC__uint64)first)) {
      FLAC__stream_decoder_flush(f->decoder);
      return flac_failure(f, "cannot reach a sample", err);
    }
  }
  while (f->window_n < least) {
    if (FLAC__stream_decoder_get_state(f->decoder) == FLAC__STREAM_DECODER_END_OF_STREAM) break;
    if (!FLAC__stream_decoder_process_single(f->decoder) || f->status != SN_OK) {
      f->next = -1;
      f->window_n = 0;
      FLAC__stream_decoder_flush(f->decoder);
      return flac_failure(f, "cannot decode", err);
    }
  }
  if (f->window_n >= least) return SN_OK;
  f->next = -1;
  return sn_fail_at(err, SN_E_CORRUPT, f->position, -1, NULL, "'%s' ends at sample %lld, %lld were expected",
                    sn_stream_name(f->stream), (long long)(first + f->window_n), (long long)(first + least));
}

sn_status sn_wfdb_flac_read(wfdb_flac *f, int64_t channel, int64_t first, int64_t n, int32_t *out, sn_error *err) {
  while (n > 0) {
    int64_t within = first - f->window_first;
    if (f->window_n == 0 || within < 0 || within >= f->window_n) {
      SN_TRY(fill_window(f, first, n < f->capacity ? n : f->capacity, err));
      within = 0;
    }
    int64_t k = f->window_n - within < n ? f->window_n - within : n;
    memcpy(out, f->window + channel * f->capacity + within, (size_t)k * sizeof *out);
    out += k;
    first += k;
    n -= k;
  }
  return SN_OK;
}

void sn_wfdb_flac_close(wfdb_flac *f) {
  if (f == NULL) return;
  if (f->decoder != NULL) FLAC__stream_decoder_delete(f->decoder);
  sn_free(f->window);
  sn_free(f);
}

#endif
