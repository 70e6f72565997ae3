/* Fuzz target of the WFDB reader: any bytes as a folder of files, everything read, strict and tolerant.
 *
 * Input: "NAME SIZE\n" lines up to an empty line, then the files' bytes in that order; the first is opened. What does not
 * follow that is one file "r.hea", with the same bytes as "r.dat" and "r.atr".  tests/test_wfdb_corpus.c runs this on
 * tests/corpus/wfdb; with clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz_wfdb.c LIBRARY -lz -lm -fopenmp */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stream.h"
#include "modalities/recording.h"

extern const sn_format sn_format_wfdb;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FILES = 8, MOST_SAMPLES = 1 << 20 };

typedef struct files {
  int n;
  char names[MOST_FILES][64];
  const char *pointers[MOST_FILES];
  const void *data[MOST_FILES];
  int64_t sizes[MOST_FILES];
} files;

static void add(files *f, const char *name, const uint8_t *data, int64_t n) {
  snprintf(f->names[f->n], sizeof f->names[0], "%s", name);
  f->pointers[f->n] = f->names[f->n];
  f->data[f->n] = data;
  f->sizes[f->n++] = n;
}

static void split(files *f, const uint8_t *data, size_t size) {
  size_t at = 0;
  int64_t sizes[MOST_FILES], total = 0;
  char names[MOST_FILES][64];
  int n = 0;
  while (at < size && data[at] != '\n' && n < MOST_FILES) {
    char line[96];
    const uint8_t *end = memchr(data + at, '\n', size - at);
    long long bytes;
    if (end == NULL || (size_t)(end - data) - at >= sizeof line) break;
    snprintf(line, sizeof line, "%.*s", (int)(end - data - (long)at), (const char *)data + at);
    if (sscanf(line, "%63s %lld", names[n], &bytes) != 2 || bytes < 0 || bytes > (1 << 24)) break;
    sizes[n++] = bytes;
    total += bytes;
    at = (size_t)(end - data) + 1;
  }
  if (n > 0 && at < size && data[at] == '\n') {
    at++;
    for (int i = 0; i < n; i++) {
      int64_t left = (int64_t)(size - at), k = sizes[i] < left ? sizes[i] : left;
      add(f, names[i], data + at, k);
      at += (size_t)k;
    }
    return;
  }
  add(f, "r.hea", data, (int64_t)size);
  add(f, "r.dat", data, (int64_t)size);
  add(f, "r.atr", data, (int64_t)size);
}

static void broken(const char *what) {
  fprintf(stderr, "fuzz_wfdb: %s\n", what);
  abort();
}

/* All samples in pieces of an odd size, against one read of the first thousand. */
static void read_everything(const sn_recording *r) {
  int64_t budget = MOST_SAMPLES;
  for (int64_t c = 0; c < r->n_channels && budget > 0; c++) {
    for (int64_t s = 0; s < r->n_segments && budget > 0; s++) {
      double values[613], whole[1000];
      int32_t stored[613];
      sn_error err;
      int64_t total = sn_recording_samples(r, c, s), head = total < 1000 ? total : 1000;
      if (total <= 0) broken("an empty segment");
      bool readable = sn_recording_read(r, c, s, 0, head, whole, &err) == SN_OK;
      for (int64_t at = 0; at < total && budget > 0; at += 613) {
        int64_t n = total - at < 613 ? total - at : 613;
        budget -= n;
        if (sn_recording_read_stored(r, c, s, at, n, stored, &err) != SN_OK) break;
        if (sn_recording_read(r, c, s, at, n, values, &err) != SN_OK) break;
        for (int64_t i = 0; i < n; i++) {
          if ((isnan(values[i]) != 0) != (stored[i] == INT32_MIN)) broken("missing in one reading only");
          if (readable && at + i < head && memcmp(&values[i], &whole[at + i], sizeof(double)) != 0 && !isnan(values[i]))
            broken("values depend on the window");
        }
      }
    }
  }
}

/* The first frames of up to eight channels at once, against each alone. */
static void read_together(const sn_recording *r) {
  enum { SPACE = 4096 };
  double together[SPACE], alone[SPACE], *values[8] = {NULL};
  int64_t channels[8], n = 0, width = 0, frames = r->segments[0].n_frames;
  for (int64_t c = 0; c < r->n_channels && n < 8; c++) {
    if (r->channels[c].uncalibrated || width + r->channels[c].samples_per_frame > SPACE) continue;
    channels[n++] = c;
    width += r->channels[c].samples_per_frame;
  }
  if (n == 0) return;
  if (frames > SPACE / width) frames = SPACE / width;
  double *to = together;
  for (int64_t i = 0; i < n; i++) {
    values[i] = to;
    to += frames * r->channels[channels[i]].samples_per_frame;
  }
  if (sn_recording_read_channels(r, channels, n, 0, 0, frames, values, NULL) != SN_OK) return;
  for (int64_t i = 0; i < n; i++) {
    int64_t count = frames * r->channels[channels[i]].samples_per_frame;
    if (sn_recording_read(r, channels[i], 0, 0, count, alone, NULL) != SN_OK) broken("readable together, not alone");
    for (int64_t k = 0; k < count; k++)
      if (!(values[i][k] == alone[k] || (isnan(alone[k]) && isnan(values[i][k])))) broken("values depend on the company");
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  files f = {0};
  sn_folder *folder = NULL;
  split(&f, data, size);
  if (sn_folder_open_memory(f.n, f.pointers, f.data, f.sizes, &folder, NULL) != SN_OK) return 0;
  sn_format_wfdb.sniff(f.names[0], f.data[0], f.sizes[0] < 1024 ? f.sizes[0] : 1024, folder);
  for (int tolerant = 0; tolerant < 2; tolerant++) {
    const sn_open_options options = {.tolerant = tolerant == 1, .assume_unit = tolerant == 1 ? "mV" : NULL};
    sn_recording *r = NULL;
    sn_annotations *list = NULL;
    sn_error err = {0};
    sn_status status = sn_format_wfdb.open(folder, f.names[0], &options, &r, &err);
    if (status != SN_OK) {
      if (err.message[0] == '\0' || err.code != status) broken("an error without a message");
      continue;
    }
    int64_t samples = 0;
    for (int64_t c = 0; c < r->n_channels; c++) samples += sn_recording_samples(r, c, -1);
    read_everything(r);
    read_together(r);
    if (samples < MOST_SAMPLES && r->vtable->verify(r, &err) != SN_OK && err.message[0] == '\0')
      broken("an error without a message");
    if (sn_recording_annotations(r, NULL, &list, &err) == SN_OK)
      for (int64_t i = 1; i < list->n; i++)
        if (list->items[i].sample < list->items[i - 1].sample) broken("annotations out of order");
    sn_annotations_destroy(list);
    sn_recording_destroy(r);
  }
  sn_folder_close(folder);
  return 0;
}
