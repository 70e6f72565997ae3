/* Fuzz target of the EDF reader: any bytes as a file, everything read, strict and tolerant.
 *
 * tests/test_edf_corpus.c runs this on tests/corpus/edf; with clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz_edf.c LIBRARY -lz -lm -fopenmp */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stream.h"
#include "core/text.h"
#include "modalities/recording.h"

extern const sn_format sn_format_edf;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_SAMPLES = 1 << 20, PIECE = 613, HEAD = 1000 };

static void broken(const char *what) {
  fprintf(stderr, "fuzz_edf: %s\n", what);
  abort();
}

/* All samples in pieces of an odd size, against one read of the first thousand, and against the stored integers. */
static void read_everything(const sn_recording *r) {
  int64_t budget = MOST_SAMPLES;
  for (int64_t c = 0; c < r->n_channels && budget > 0; c++) {
    for (int64_t s = 0; s < r->n_segments && budget > 0; s++) {
      double values[PIECE], whole[HEAD];
      int32_t stored[PIECE];
      const int64_t total = sn_recording_samples(r, c, s), head = total < HEAD ? total : HEAD;
      if (total <= 0) broken("an empty segment");
      const bool readable = sn_recording_read(r, c, s, 0, head, whole, NULL) == SN_OK;
      if (readable == r->channels[c].uncalibrated) broken("readable or not");
      for (int64_t at = 0; at < total && budget > 0; at += PIECE) {
        const int64_t n = total - at < PIECE ? total - at : PIECE;
        budget -= n;
        if (sn_recording_read_stored(r, c, s, at, n, stored, NULL) != SN_OK) broken("stored integers");
        if (!readable) continue;
        if (sn_recording_read(r, c, s, at, n, values, NULL) != SN_OK) broken("values");
        for (int64_t i = 0; i < n; i++) {
          if (!isfinite(values[i])) broken("a value that is not finite");
          if (at + i < head && memcmp(&values[i], &whole[at + i], sizeof(double)) != 0) broken("values depend on the window");
        }
      }
    }
  }
}

/* The first frames of up to eight channels at once, against each alone. */
static void read_together(const sn_recording *r) {
  enum { SPACE = 4096 };
  double together[SPACE], alone[SPACE], *values[8] = {NULL}, *to = together;
  int64_t channels[8], n = 0, width = 0;
  if (r->n_segments == 0) return;
  int64_t frames = r->segments[r->n_segments - 1].n_frames;
  for (int64_t c = r->n_channels - 1; c >= 0 && n < 8; c--) {
    if (r->channels[c].uncalibrated || width + r->channels[c].samples_per_frame > SPACE) continue;
    channels[n++] = c;
    width += r->channels[c].samples_per_frame;
  }
  if (n == 0) return;
  if (frames > SPACE / width) frames = SPACE / width;
  for (int64_t i = 0; i < n; i++) {
    values[i] = to;
    to += frames * r->channels[channels[i]].samples_per_frame;
  }
  if (sn_recording_read_channels(r, channels, n, r->n_segments - 1, 0, frames, values, NULL) != SN_OK)
    broken("not readable together");
  for (int64_t i = 0; i < n; i++) {
    const int64_t count = frames * r->channels[channels[i]].samples_per_frame;
    if (sn_recording_read(r, channels[i], r->n_segments - 1, 0, count, alone, NULL) != SN_OK) broken("not alone");
    if (memcmp(values[i], alone, (size_t)count * sizeof(double)) != 0) broken("values depend on the company");
  }
}

static void look_at_annotations(const sn_recording *r) {
  sn_annotations *list = NULL;
  sn_error err = {0};
  if (sn_recording_annotations(r, NULL, &list, &err) != SN_OK) {
    if (err.message[0] == '\0') broken("an error without a message");
    return;
  }
  for (int64_t i = 0; i < list->n; i++) {
    const sn_annotation *a = &list->items[i];
    if (!isfinite(a->onset_s) || a->duration_s < 0) broken("a time");
    if (i > 0 && a->onset_s < list->items[i - 1].onset_s) broken("annotations out of order");
    if (a->text != NULL && sn_utf8_error(a->text, (int64_t)strlen(a->text)) >= 0) broken("a text that is not UTF-8");
    if (a->channel < -1 || a->channel >= r->n_channels) broken("a channel that is not there");
  }
  sn_annotations_destroy(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_folder *folder = NULL;
  const char *const names[1] = {"r.edf"};
  const void *const contents[1] = {data};
  const int64_t sizes[1] = {(int64_t)size};
  if (sn_folder_open_memory(1, names, contents, sizes, &folder, NULL) != SN_OK) return 0;
  sn_format_edf.sniff(names[0], data, size < 1024 ? (int64_t)size : 1024, folder);
  for (int tolerant = 0; tolerant < 2; tolerant++) {
    const sn_open_options options = {.tolerant = tolerant == 1, .assume_rate_hz = tolerant == 1 ? 100 : 0};
    sn_recording *r = NULL;
    sn_error err = {0};
    sn_status status = sn_format_edf.open(folder, names[0], &options, &r, &err);
    if (status != SN_OK) {
      if (err.message[0] == '\0' || err.code != status) broken("an error without a message");
      continue;
    }
    int64_t samples = 0;
    for (int64_t c = 0; c < r->n_channels; c++) samples += sn_recording_samples(r, c, -1);
    if (samples > (int64_t)size * 2 + 1 && !r->annotations_alone && size > 3 && data[0] != 0x1F) broken("invented samples");
    read_everything(r);
    read_together(r);
    look_at_annotations(r);
    sn_recording_destroy(r);
  }
  sn_folder_close(folder);
  return 0;
}
