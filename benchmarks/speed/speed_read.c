/* needs: full */
/* Reading recordings: whole files and random windows, all channels, float64 in their units. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "benchmarks/speed/speed_families.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/edf/edf.h"
#include "modalities/recording.h"

enum { WINDOWS = 64 };
static const double WINDOW_S = 4;

/* What is read: the channels that have values, and those that only have stored integers (trigger words). */
typedef struct reader {
  sn_recording *r;
  int64_t n, *channels;       /* with values */
  int64_t n_words, *words;    /* without */
  double **values;            /* (n) into `space`, for the segment or window at hand */
  double *space;
  int32_t *stored;
} reader;

/* Sums that two readers must agree on: of values, of their sizes, and of values weighted by place, so that an exchange of
 * samples or channels shows. The weight of sample i of channel c is 1 + (i + 7 c) mod 13. */
typedef struct checksum {
  double sum, size, weighted;
} checksum;

static void add_sums(checksum *sums, const reader *d, int64_t segment, int64_t first_frame, int64_t n_frames) {
  int64_t before = 0;
  for (int64_t s = 0; s < segment; s++) before += d->r->segments[s].n_frames;
  for (int64_t k = 0; k < d->n; k++) {
    const int64_t per = d->r->channels[d->channels[k]].samples_per_frame, at = (before + first_frame) * per;
    double sum = 0, size = 0, weighted = 0;
    for (int64_t i = 0; i < n_frames * per; i++) {
      const double v = d->values[k][i];
      if (isnan(v)) continue;
      sum += v;
      size += fabs(v);
      weighted += v * (double)(1 + (at + i + 7 * k) % 13);
    }
    sums->sum += sum;
    sums->size += size;
    sums->weighted += weighted;
  }
}

static void release(reader *d) {
  sn_free(d->channels);
  sn_free(d->words);
  sn_free(d->values);
  sn_free(d->space);
  sn_free(d->stored);
  sn_recording_destroy(d->r);
  memset(d, 0, sizeof *d);
}

static sn_status open_reader(reader *d, const char *path, sn_error *err) {
  memset(d, 0, sizeof *d);
  SN_TRY(sn_recording_open(path, NULL, &d->r, err));
  SN_TRY(sn_alloc(&d->channels, d->r->n_channels, sizeof *d->channels, "channels", err));
  SN_TRY(sn_alloc(&d->words, d->r->n_channels, sizeof *d->words, "channels", err));
  SN_TRY(sn_alloc(&d->values, d->r->n_channels, sizeof *d->values, "channels", err));
  for (int64_t c = 0; c < d->r->n_channels; c++) {
    if (!d->r->channels[c].uncalibrated) d->channels[d->n++] = c;
    else d->words[d->n_words++] = c;
  }
  return SN_OK;
}

/* Large pages for large blocks, as numpy asks for: without them most of a whole read is the kernel handing out pages. */
static void ask_for_large_pages(void *memory, int64_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)memory + page - 1) / page * page;
  const uintptr_t to = ((uintptr_t)memory + (uintptr_t)bytes) / page * page;
  if (bytes >= (4 << 20) && to > from && madvise((void *)from, to - from, MADV_HUGEPAGE) != 0) return; /* then without */
#endif
}

/* Fresh room for n_frames of every channel. */
static sn_status make_room(reader *d, int64_t n_frames, sn_error *err) {
  int64_t total = 0, most = 0;
  for (int64_t k = 0; k < d->n; k++) total += d->r->channels[d->channels[k]].samples_per_frame;
  for (int64_t k = 0; k < d->n_words; k++)
    most = d->r->channels[d->words[k]].samples_per_frame > most ? d->r->channels[d->words[k]].samples_per_frame : most;
  sn_free(d->space);
  sn_free(d->stored);
  d->space = NULL;
  d->stored = NULL;
  SN_TRY(sn_alloc_aligned(&d->space, total * n_frames * (int64_t)sizeof *d->space + 64, "values", err));
  SN_TRY(sn_alloc_aligned(&d->stored, most * n_frames * (int64_t)sizeof *d->stored + 64, "words", err));
  ask_for_large_pages(d->space, total * n_frames * (int64_t)sizeof *d->space);
  double *to = d->space;
  for (int64_t k = 0; k < d->n; k++) {
    d->values[k] = to;
    to += d->r->channels[d->channels[k]].samples_per_frame * n_frames;
  }
  return SN_OK;
}

static sn_status read_frames(reader *d, int64_t segment, int64_t first, int64_t n, sn_error *err) {
  SN_TRY(sn_recording_read_channels(d->r, d->channels, d->n, segment, first, n, d->values, err));
  for (int64_t k = 0; k < d->n_words; k++) {
    const int64_t per = d->r->channels[d->words[k]].samples_per_frame;
    if (d->r->vtable->read_stored != NULL)
      SN_TRY(sn_recording_read_stored(d->r, d->words[k], segment, first * per, n * per, d->stored, err));
  }
  return SN_OK;
}

/* From the path to all values. sums NULL: not wanted. */
static sn_status read_whole(const char *path, checksum *sums, double *samples, sn_error *err) {
  reader d;
  sn_status status;
  SN_TRY_GOTO(open_reader(&d, path, err), done);
  for (int64_t s = 0; s < d.r->n_segments; s++) {
    SN_TRY_GOTO(make_room(&d, d.r->segments[s].n_frames, err), done);
    SN_TRY_GOTO(read_frames(&d, s, 0, d.r->segments[s].n_frames, err), done);
    if (sums != NULL) add_sums(sums, &d, s, 0, d.r->segments[s].n_frames);
  }
  *samples = 0;
  for (int64_t c = 0; c < d.r->n_channels; c++) *samples += (double)sn_recording_samples(d.r, c, -1);
done:
  release(&d);
  return status;
}

/* Windows of the longest segment; where the k-th begins is a function of k (a linear congruential generator), so that another
 * program takes the same ones. */
static int64_t window_start(int k, int64_t n_frames, int64_t length) {
  uint64_t x = (uint64_t)k + 1;
  for (int i = 0; i < 4; i++) x = x * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((x >> 33) % (uint64_t)(n_frames - length + 1));
}

static sn_status read_windows(reader *d, checksum *sums, int64_t *segment, int64_t *length, sn_error *err) {
  const sn_recording *r = d->r;
  *segment = 0;
  for (int64_t s = 1; s < r->n_segments; s++)
    if (r->segments[s].n_frames > r->segments[*segment].n_frames) *segment = s;
  *length = (int64_t)ceil(WINDOW_S * (double)r->rate_num / (double)r->rate_den);
  if (*length > r->segments[*segment].n_frames / 2) *length = r->segments[*segment].n_frames / 2;
  if (*length < 1) *length = 1;
  SN_TRY(make_room(d, *length, err));
  for (int k = 0; k < WINDOWS; k++) {
    const int64_t first = window_start(k, r->segments[*segment].n_frames, *length);
    SN_TRY(read_frames(d, *segment, first, *length, err));
    if (sums != NULL) add_sums(sums, d, *segment, first, *length);
  }
  return SN_OK;
}

/* 64 channels of 160 Hz for 120 s, as EEGMMI has them. */
static sn_status write_example(const char *path, sn_error *err) {
  enum { CHANNELS = 64, RATE = 160, SECONDS = 120 };
  sn_edf_write_signal signals[CHANNELS];
  char labels[CHANNELS][17];
  double *values = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&values, RATE * SECONDS, sizeof *values, "values", err));
  for (int i = 0; i < RATE * SECONDS; i++) values[i] = 50 * sin(0.3926990817 * i) + 20 * sin(0.013 * i);
  for (int c = 0; c < CHANNELS; c++) {
    snprintf(labels[c], sizeof labels[c], "EEG %d", c);
    signals[c] = (sn_edf_write_signal){.label = labels[c], .samples_per_record = RATE, .values = values};
  }
  const sn_edf_write_file file = {.age_years = NAN, .duration_num = 1, .duration_den = 1, .n_records = SECONDS,
                                  .n_signals = CHANNELS, .signals = signals};
  status = sn_edf_write(path, &file, err);
  sn_free(values);
  return status;
}

sn_status sn_speed_read(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  sn_speed_times whole = {0}, windows = {0};
  checksum all = {0}, part = {0};
  double samples = 0;
  int64_t segment = 0, length = 0;
  char *path = NULL;
  reader d = {0};
  sn_status status;
  if (options->file != NULL) {
    SN_TRY(sn_strdup(&path, options->file, "path", err));
  } else {
    SN_TRY(sn_path_join(options->folder, "example.edf", &path, err));
    SN_TRY_GOTO(write_example(path, err), done);
  }
  SN_TRY_GOTO(read_whole(path, &all, &samples, err), done); /* also warms the page cache */
  double start = sn_speed_now_ms(false);
  do {
    const double before = sn_speed_now_ms(options->cpu_time);
    SN_TRY_GOTO(read_whole(path, NULL, &samples, err), done);
    sn_speed_add(&whole, sn_speed_now_ms(options->cpu_time) - before);
  } while (sn_speed_now_ms(false) - start < 500 * options->seconds);
  SN_TRY_GOTO(open_reader(&d, path, err), done);
  SN_TRY_GOTO(read_windows(&d, &part, &segment, &length, err), done);
  start = sn_speed_now_ms(false);
  do {
    const double before = sn_speed_now_ms(options->cpu_time);
    SN_TRY_GOTO(read_windows(&d, NULL, &segment, &length, err), done);
    sn_speed_add(&windows, (sn_speed_now_ms(options->cpu_time) - before) / WINDOWS);
  } while (sn_speed_now_ms(false) - start < 500 * options->seconds);
  row->n_threads = 1;
  sn_speed_put(row, "ms", sn_speed_best(&whole));
  sn_speed_put(row, "ms_median", sn_speed_median(&whole));
  sn_speed_put(row, "window_ms", sn_speed_best(&windows));
  sn_speed_put(row, "window_ms_median", sn_speed_median(&windows));
  sn_speed_put(row, "mb_per_s", samples * 8e-3 / sn_speed_best(&whole));
  sn_speed_put(row, "samples", samples);
  sn_speed_put(row, "channels", (double)d.n);
  sn_speed_put(row, "window_segment", (double)segment);
  sn_speed_put(row, "window_frames", (double)length);
  sn_speed_put(row, "windows", WINDOWS);
  sn_speed_put(row, "sum", all.sum);
  sn_speed_put(row, "sum_abs", all.size);
  sn_speed_put(row, "sum_weighted", all.weighted);
  sn_speed_put(row, "window_sum", part.sum);
  sn_speed_put(row, "window_sum_abs", part.size);
  sn_speed_put(row, "window_sum_weighted", part.weighted);
done:
  release(&d);
  sn_free(path);
  return status;
}
