#include "fuzz_recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/stream.h"
#include "core/text.h"

enum { MOST_FILES = 10, MOST_SAMPLES = 1 << 18, PIECE = 613, WHOLE = 1000, SPACE = 4096, TOGETHER = 8 };

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

static void split(files *f, const char *const *plain, const uint8_t *data, size_t size) {
  size_t at = 0;
  long long sizes[MOST_FILES];
  char names[MOST_FILES][64];
  int n = 0;
  while (at < size && data[at] != '\n' && n < MOST_FILES) {
    char line[96];
    const uint8_t *end = memchr(data + at, '\n', size - at);
    if (end == NULL || (size_t)(end - data) - at >= sizeof line) break;
    snprintf(line, sizeof line, "%.*s", (int)(end - data - (long)at), (const char *)data + at);
    if (sscanf(line, "%63s %lld", names[n], &sizes[n]) != 2 || sizes[n] < 0 || sizes[n] > (1 << 24)) break;
    n++;
    at = (size_t)(end - data) + 1;
  }
  if (n == 0 || at >= size || data[at] != '\n') {
    for (; *plain != NULL; plain++) add(f, *plain, data, (int64_t)size);
    return;
  }
  at++;
  for (int i = 0; i < n; i++) {
    int64_t left = (int64_t)(size - at), k = sizes[i] < left ? sizes[i] : left;
    add(f, names[i], data + at, k);
    at += (size_t)k;
  }
}

void fuzz_broken(const char *what) {
  fprintf(stderr, "fuzz: %s\n", what);
  abort();
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* All samples in pieces of an odd size, against one read of the first thousand. */
static void read_everything(const fuzz_target *t, const sn_recording *r) {
  int64_t budget = MOST_SAMPLES;
  for (int64_t c = 0; c < r->n_channels && budget > 0; c++) {
    for (int64_t s = 0; s < r->n_segments && budget > 0; s++) {
      double values[PIECE], whole[WHOLE];
      int32_t stored[PIECE];
      sn_error err;
      int64_t total = sn_recording_samples(r, c, s), head = total < WHOLE ? total : WHOLE;
      if (total <= 0) fuzz_broken("an empty segment");
      bool readable = sn_recording_read(r, c, s, 0, head, whole, &err) == SN_OK;
      if (!readable && err.message[0] == '\0') fuzz_broken("an error without a message");
      if (t->all_stored && readable == r->channels[c].uncalibrated) fuzz_broken("readable or not");
      for (int64_t at = 0; at < total && budget > 0; at += PIECE) {
        int64_t n = total - at < PIECE ? total - at : PIECE;
        budget -= n;
        const bool both =
            (t->stored || t->all_stored) && sn_recording_read_stored(r, c, s, at, n, stored, &err) == SN_OK;
        if (t->all_stored && !both) fuzz_broken("stored integers");
        if (t->all_stored && !readable) continue;
        if (sn_recording_read(r, c, s, at, n, values, &err) != SN_OK) break;
        for (int64_t i = 0; i < n; i++) {
          if (isinf(values[i])) fuzz_broken("an infinite value");
          if (both && (isnan(values[i]) != 0) != (stored[i] == INT32_MIN)) fuzz_broken("missing in one reading only");
          if (readable && at + i < head && !same(values[i], whole[at + i])) fuzz_broken("values depend on the window");
        }
      }
    }
  }
}

/* The first frames of up to eight channels at once, against each alone. */
static void read_together(const sn_recording *r) {
  double together[SPACE], alone[SPACE], *values[TOGETHER] = {NULL};
  int64_t channels[TOGETHER], n = 0, width = 0, frames = r->segments[0].n_frames;
  for (int64_t c = 0; c < r->n_channels && n < TOGETHER; c++) {
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
    if (sn_recording_read(r, channels[i], 0, 0, count, alone, NULL) != SN_OK)
      fuzz_broken("readable together, not alone");
    for (int64_t k = 0; k < count; k++)
      if (!same(values[i][k], alone[k])) fuzz_broken("values depend on the company");
  }
}

static void look_at_annotations(const fuzz_target *t, const sn_recording *r, int64_t end) {
  sn_annotations *list = NULL;
  sn_error err = {0};
  if (sn_recording_annotations(r, NULL, &list, &err) != SN_OK) {
    if (err.message[0] == '\0') fuzz_broken("an error without a message");
    return;
  }
  for (int64_t i = 0; i < list->n; i++) {
    const sn_annotation *a = &list->items[i];
    if (i > 0 && (t->outside ? a->onset_s < a[-1].onset_s : a->sample < a[-1].sample))
      fuzz_broken("annotations out of order");
    if (!t->outside && !r->annotations_alone && (a->sample < 0 || a->sample >= end))
      fuzz_broken("an annotation outside the recording");
    if (!isfinite(a->onset_s) || a->duration_s < 0) fuzz_broken("a time");
    if (!t->any_channel && (a->channel < -1 || a->channel >= r->n_channels)) fuzz_broken("a channel that is not there");
    if (a->text != NULL && sn_utf8_error(a->text, (int64_t)strlen(a->text)) >= 0) fuzz_broken("text that is not UTF-8");
  }
  sn_annotations_destroy(list);
}

static void look_at(const fuzz_target *t, const sn_recording *r) {
  int64_t end = 0;
  for (int64_t s = 0; s < r->n_segments; s++) {
    if (r->segments[s].start_frame < end) fuzz_broken("segments overlap");
    end = r->segments[s].start_frame + r->segments[s].n_frames;
  }
  read_everything(t, r);
  if (r->n_segments > 0) read_together(r);
  look_at_annotations(t, r, end);
  for (int64_t c = 0; c < r->n_channels; c++)
    if (sn_utf8_error(r->channels[c].name, (int64_t)strlen(r->channels[c].name)) >= 0)
      fuzz_broken("a name that is not UTF-8");
}

void fuzz_recording_as(const fuzz_target *t, const uint8_t *data, size_t size) {
  files f = {0};
  sn_folder *folder = NULL;
  split(&f, t->names, data, size);
  if (sn_folder_open_memory(f.n, f.pointers, f.data, f.sizes, &folder, NULL) != SN_OK) return;
  t->format->sniff(f.names[0], f.data[0], f.sizes[0] < 1024 ? f.sizes[0] : 1024, folder);
  for (int tolerant = 0; tolerant < 2; tolerant++) {
    sn_open_options options = {.tolerant = tolerant == 1};
    if (options.tolerant) {
      options.assume_unit = t->assume_unit;
      options.assume_rate_hz = t->assume_rate_hz;
    }
    sn_recording *r = NULL;
    sn_error err = {0};
    sn_status status = t->format->open(folder, f.names[0], &options, &r, &err);
    if (status != SN_OK) {
      if (err.message[0] == '\0' || err.code != status) fuzz_broken("an error without a message");
      continue;
    }
    if (!t->may_be_empty && (r->n_channels <= 0 || r->n_segments <= 0 || r->rate_num <= 0 || r->rate_den <= 0))
      fuzz_broken("an empty recording");
    look_at(t, r);
    if (t->also != NULL) t->also(r, data, size);
    sn_recording_destroy(r);
  }
  sn_folder_close(folder);
}

void fuzz_recording(const sn_format *format, const char *name, const uint8_t *data, size_t size) {
  const fuzz_target target = {.format = format, .names = {name}, .assume_unit = "uV"};
  fuzz_recording_as(&target, data, size);
}

static void run_changed(const char *bytes, int64_t size, int (*target)(const uint8_t *, size_t)) {
  for (int64_t k = 0; k < size; k += 1 + size / 200) {
    uint8_t *copy = NULL;
    if (sn_alloc(&copy, size, 1, "copy", NULL) != SN_OK) fuzz_broken("out of memory");
    memcpy(copy, bytes, (size_t)size);
    copy[k] ^= (uint8_t)(1u << (k % 8));
    target(copy, (size_t)size);
    sn_free(copy);
    if (sn_alloc(&copy, k + 1, 1, "copy", NULL) != SN_OK) fuzz_broken("out of memory");
    memcpy(copy, bytes, (size_t)k + 1); /* of the exact size, for the sanitizer */
    target(copy, (size_t)k + 1);
    sn_free(copy);
  }
}

int fuzz_corpus(const char *folder, int (*target)(const uint8_t *data, size_t size)) {
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  char path[1024];
  int run = 0;
  snprintf(path, sizeof path, "%s", folder);
  if (sn_dir_list(path, &entries, &n, NULL) != SN_OK) fuzz_broken("the corpus cannot be listed");
  for (int64_t i = 0; i < n; i++, run++) {
    sn_stream *stream;
    char *bytes;
    int64_t size;
    snprintf(path, sizeof path, "%s/%s", folder, entries[i].name);
    if (sn_stream_open(path, &stream, NULL) != SN_OK) fuzz_broken("a file of the corpus cannot be opened");
    if (sn_stream_read_all(stream, 1 << 20, &bytes, &size, NULL) != SN_OK)
      fuzz_broken("a file of the corpus cannot be read");
    sn_stream_close(stream);
    target((const uint8_t *)bytes, (size_t)size);
    run_changed(bytes, size, target);
    sn_free(bytes);
  }
  sn_dir_free(entries, n);
  return run;
}
