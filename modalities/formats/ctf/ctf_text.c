/* CTF: MarkerFile.mrk, ClassFile.cls and bad.segments as annotations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/ctf/ctf_parts.h"

enum { MOST_BYTES = 1 << 26 };

/* One of the files while it is read. */
typedef struct reading {
  const sn_recording *r;
  const ctf_recording *self;
  sn_annotations *list;
  int64_t capacity;
  const char *file;
  char *rest;
  int64_t line;
} reading;

static sn_status wrong(const reading *s, const char *what, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, s->line, s->file, "%s, line %lld: %s", s->file, (long long)s->line, what);
}

/* Where frame `frame` of all trials together lies in the recording; -1: nowhere. */
static int64_t time_of(const reading *s, int64_t frame) {
  if (frame < 0 || frame >= s->self->n_frames) return -1;
  int64_t low = 0, high = s->r->n_segments;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (s->self->first_frame[middle] <= frame)
      low = middle;
    else
      high = middle;
  }
  return s->r->segments[low].start_frame + frame - s->self->first_frame[low];
}

/* At `onset_s` from the start of a trial (from 0). */
static sn_status add(reading *s, int64_t trial, double onset_s, double duration_s, const char *text, sn_error *err) {
  const double rate = s->list->rate, at = onset_s * rate;
  int64_t frame = -1, within = 0;
  if (trial >= 0 && trial < s->self->n_trials && at > -1 && at < (double)s->self->n_samples + 1) {
    within = (int64_t)floor(at + 0.5);
    if (within >= 0 && within < s->self->n_samples) frame = time_of(s, trial * s->self->n_samples + within);
  }
  if (frame < 0)
    return sn_warning_add(&s->list->warnings, &s->list->n_warnings, "annotation_beyond_end", s->file, err,
                          "%s: '%s' in trial %lld at %g s lies outside the data", s->file, text, (long long)trial,
                          onset_s);
  sn_annotation a = {.sample = frame,
                     .onset_s = ((double)frame + (at - (double)within)) / rate,
                     .duration_s = duration_s,
                     .channel = -1};
  sn_text_cut(a.code, sizeof a.code, text);
  return sn_annotations_add(s->list, &s->capacity, &a, text, err);
}

/* ---- lists by name: "NAME:", "NUMBER OF ...:", "LIST OF ...:", a title, then rows that begin with a trial ---- */

static bool starts(const char *line, const char *word) { return strncmp(line, word, strlen(word)) == 0; }

static sn_status read_count(reading *s, int64_t *n, sn_error *err) {
  const char *line = sn_ctf_next_line(&s->rest, &s->line);
  if (line == NULL || !sn_parse_i64(line, n) || *n < 0) return wrong(s, "a count is expected", err);
  return SN_OK;
}

static sn_status read_row(reading *s, bool with_time, const char *name, sn_error *err) {
  char *line = sn_ctf_next_line(&s->rest, &s->line), *rest = line;
  const char *first = line != NULL ? strtok_r(rest, " \t", &rest) : NULL,
             *second = first != NULL ? strtok_r(rest, " \t", &rest) : NULL;
  int64_t trial;
  double time = 0;
  if (first == NULL || !sn_parse_i64(first, &trial) ||
      (with_time && (second == NULL || !sn_parse_f64(second, false, &time))))
    return wrong(s, with_time ? "a trial and a time are expected" : "a trial is expected", err);
  if (with_time) return add(s, trial, time + (double)s->self->n_before / s->list->rate, 0, name, err);
  return add(s, trial, 0, (double)s->self->n_samples / s->list->rate, name, err);
}

static sn_status read_lists(reading *s, bool markers, sn_error *err) {
  const char *const number = markers ? "NUMBER OF MARKERS:" : "NUMBER OF CLASSES:";
  const char *const rows = markers ? "NUMBER OF SAMPLES:" : "NUMBER OF TRIALS:", *const list = markers
                                                                                                   ? "LIST OF SAMPLES:"
                                                                                                   : "LIST OF TRIALS:";
  int64_t announced = -1, found = 0, n = -1;
  char *line, *name = NULL;
  while ((line = sn_ctf_next_line(&s->rest, &s->line)) != NULL) {
    if (starts(line, number))
      SN_TRY(read_count(s, &announced, err));
    else if (starts(line, rows))
      SN_TRY(read_count(s, &n, err));
    else if (starts(line, "NAME:")) {
      name = sn_ctf_next_line(&s->rest, &s->line);
      n = -1;
    } else if (starts(line, list)) {
      if (name == NULL || n < 0) return wrong(s, "a list without name and count", err);
      if (sn_ctf_next_line(&s->rest, &s->line) == NULL && n > 0) return wrong(s, "the list is missing", err);
      for (int64_t i = 0; i < n; i++) SN_TRY(read_row(s, markers, name, err));
      found++;
      name = NULL;
    }
  }
  if (announced == found) return SN_OK;
  return sn_fail_at(err, SN_E_CORRUPT, -1, s->line, s->file, "%s announces %lld lists and holds %lld", s->file,
                    (long long)announced, (long long)found);
}

/* Lines of trial (from 1), start and end in seconds from the sync point. */
static sn_status read_bad_segments(reading *s, sn_error *err) {
  char *line;
  while ((line = sn_ctf_next_line(&s->rest, &s->line)) != NULL) {
    char *next = line;
    const char *part[3];
    int64_t trial;
    double start, end;
    int parts = 0;
    if (line[0] == '\0') continue;
    for (char *p; parts < 3 && (p = strtok_r(next, " \t", &next)) != NULL; parts++) part[parts] = p;
    if (parts < 3 || !sn_parse_i64(part[0], &trial) || !sn_parse_f64(part[1], false, &start) ||
        !sn_parse_f64(part[2], false, &end) || end < start)
      return wrong(s, "a trial, a start and an end are expected", err);
    const double before = (double)s->self->n_before / s->list->rate;
    SN_TRY(add(s, trial < 1 ? -1 : trial - 1, start + before, end - start, "bad segment", err));
  }
  return SN_OK;
}

sn_status sn_ctf_annotations_read(const sn_recording *r, const char *which, sn_annotations *list, sn_error *err) {
  static const char *const FILES[] = {"MarkerFile.mrk", "ClassFile.cls", "bad.segments"}, *const KINDS[] = {"markers",
                                                                                                            "classes",
                                                                                                            "bad"};
  const ctf_recording *self = r->self;
  reading s = {.r = r, .self = self, .list = list, .capacity = list->n};
  for (int i = 0; i < 3; i++) {
    sn_stream *stream = NULL;
    char *bytes = NULL, *text = NULL;
    int64_t n = 0;
    if ((which != NULL && strcmp(which, KINDS[i]) != 0) || !sn_folder_has(self->folder, FILES[i])) continue;
    SN_TRY(sn_folder_open(self->folder, FILES[i], &stream, err));
    sn_status status = sn_stream_read_all(stream, MOST_BYTES, &bytes, &n, err);
    sn_stream_close(stream);
    if (status == SN_OK) status = sn_text_to_utf8(bytes, n, &text, NULL, err);
    sn_free(bytes);
    s.file = FILES[i];
    s.rest = text;
    s.line = 0;
    if (status == SN_OK) status = i == 2 ? read_bad_segments(&s, err) : read_lists(&s, i == 0, err);
    sn_free(text);
    SN_TRY(status);
  }
  return SN_OK;
}
