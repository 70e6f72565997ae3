/* Annotation files in MIT format, annot(5): pairs of bytes, 6 bits of code and 10 of time, and modifiers behind them.
 *
 * Two conventions live inside the text of notes at the head of a file: "## time resolution: R" states the ticks per second
 * of this file, and the lines between "## annotation type definitions" and "## end of definitions" ("15 c calibration")
 * give codes other marks. Neither is an annotation of the recording. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

enum { NOTE = 22, LAST_CODE = 49, SKIP = 59, NUM = 60, SUB = 61, CHN = 62, AUX = 63, N_CODES = 59 };

static const char *const MARKS[LAST_CODE + 1] = {
    " ", "N", "L", "R", "a", "V", "F", "J", "A",  "S",  "E", "j", "/", "Q", "~",  NULL, "|", NULL, "s", "T", "*", "D", "\"", "=", "p",
    "B", "^", "t", "+", "u", "?", "!", "[", "]", "e", "n", "@", "x", "f", "(", ")", "r",  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
};
static const char RESOLUTION[] = "## time resolution:";
static const char DEFINITIONS[] = "## annotation type definitions";
static const char END_OF_DEFINITIONS[] = "## end of definitions";

/* ---- decoding ---- */

typedef struct decoder {
  const uint8_t *bytes;
  int64_t n, at;
  const char *name;
  bool tolerant;
  sn_annotations *list;
  int64_t capacity;
  int64_t time;
  int32_t number, channel;
  double rate;
  bool defined;              /* the file gives codes marks of its own */
  sn_wfdb_annotation_style style;
  int64_t texts_with_zero;   /* less those without */
  char marks[N_CODES][16];
} decoder;

static sn_status add_annotation(decoder *d, int code, sn_error *err) {
  SN_TRY(sn_grow(&d->list->items, &d->capacity, d->list->n + 1, sizeof *d->list->items, "annotations", err));
  sn_annotation *a = &d->list->items[d->list->n];
  memset(a, 0, sizeof *a);
  a->sample = d->time;
  a->duration_s = NAN;
  a->channel = d->channel;
  a->number = d->number;
  memcpy(a->code, d->marks[code], sizeof a->code);
  d->list->n++;
  return SN_OK;
}

static sn_status cut_short(const decoder *d, const char *what, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, d->at, -1, what, "'%s' ends at byte %lld inside %s", d->name, (long long)d->n, what);
}

/* A modifier word behind the last annotation. */
static sn_status modify(decoder *d, int kind, int value, sn_error *err) {
  sn_annotation *a = d->list->n > 0 ? &d->list->items[d->list->n - 1] : NULL;
  if (a == NULL)
    return sn_fail_at(err, SN_E_CORRUPT, d->at, -1, NULL, "'%s' byte %lld: a modifier before the first annotation", d->name,
                      (long long)d->at);
  switch (kind) {
    case NUM: a->number = d->number = (int8_t)(value & 0xFF); return SN_OK;
    case SUB: a->subtype = (int8_t)(value & 0xFF); return SN_OK;
    case CHN: a->channel = d->channel = value & 0xFF; return SN_OK;
    default: break;
  }
  int64_t length = value, padded = value + (value & 1), start = d->at + 2;
  if (padded > d->n - start) {
    d->list->n--; /* half an annotation is none */
    sn_free(a->text);
    return cut_short(d, "an auxiliary string", err);
  }
  const char *text = (const char *)d->bytes + start;
  while (length > 0 && text[length - 1] == '\0') length--;
  if (length < 3 || memcmp(text, "## ", 3) != 0) d->texts_with_zero += length < value ? 1 : -1;
  sn_free(a->text);
  a->text = NULL;
  SN_TRY(sn_text_to_utf8(text, length, &a->text, NULL, err));
  d->at += padded;
  return SN_OK;
}

/* One word; *end after the closing mark. */
static sn_status step(decoder *d, bool *end, sn_error *err) {
  if (d->n - d->at < 2) return cut_short(d, d->n == d->at ? "the list: no end mark" : "a word", err);
  int word = d->bytes[d->at] | d->bytes[d->at + 1] << 8, kind = word >> 10, value = word & 0x3FF;
  if (kind == 0 && value == 0) {
    *end = true;
  } else if (kind == SKIP) {
    if (d->n - d->at < 6) return cut_short(d, "a long interval", err);
    const uint8_t *p = d->bytes + d->at + 2;
    d->time += (int32_t)((uint32_t)p[0] << 16 | (uint32_t)p[1] << 24 | (uint32_t)p[2] | (uint32_t)p[3] << 8);
    d->at += 4;
  } else if (kind > SKIP) {
    SN_TRY(modify(d, kind, value, err));
  } else {
    d->time += value;
    if (kind != 0) { /* code 0 with an interval only moves the time */
      if (d->time < 0)
        return sn_fail_at(err, SN_E_CORRUPT, d->at, -1, NULL, "'%s' byte %lld: an annotation at sample %lld", d->name,
                          (long long)d->at, (long long)d->time);
      SN_TRY(add_annotation(d, kind, err));
    }
  }
  d->at += 2;
  return SN_OK;
}

static void default_marks(decoder *d) {
  for (int code = 0; code < N_CODES; code++) {
    const char *mark = code <= LAST_CODE ? MARKS[code] : NULL;
    if (mark != NULL) snprintf(d->marks[code], sizeof d->marks[code], "%s", mark);
    else snprintf(d->marks[code], sizeof d->marks[code], "[%d]", code);
  }
}

static bool is_note_at_start(const sn_annotation *a) {
  return a->sample == 0 && strcmp(a->code, "\"") == 0 && a->text != NULL;
}

/* "15 c calibration": code, mark, description. */
static void take_definition(decoder *d, const char *text) {
  char mark[16];
  int code, used = 0;
  if (sscanf(text, "%d %15s%n", &code, mark, &used) == 2 && code > 0 && code < N_CODES && used > 0)
    snprintf(d->marks[code], sizeof d->marks[code], "%s", mark);
  d->defined = true;
}

/* Reads and removes the notes that describe the file; renames codes. Annotations still carry default marks. */
static void take_head(decoder *d) {
  sn_annotations *list = d->list;
  int64_t i = 0, kept = 0;
  bool inside = false;
  for (; i < list->n; i++) {
    sn_annotation a = list->items[i];
    bool taken = false;
    if (is_note_at_start(&a)) {
      double rate;
      if (strncmp(a.text, RESOLUTION, sizeof RESOLUTION - 1) == 0) {
        if (sn_parse_f64(a.text + sizeof RESOLUTION - 1, false, &rate) && isfinite(rate) && rate > 0) {
          d->rate = d->style.time_resolution = rate;
          taken = true;
        }
      } else if (strcmp(a.text, DEFINITIONS) == 0) {
        taken = inside = true;
      } else if (strcmp(a.text, END_OF_DEFINITIONS) == 0) {
        taken = inside;
        inside = false;
      } else if (inside) {
        take_definition(d, a.text);
        taken = true;
      }
    } else {
      inside = false;
    }
    if (taken) sn_free(a.text);
    else list->items[kept++] = a;
  }
  list->n = kept;
}

static void rename_codes(decoder *d) {
  decoder standard;
  default_marks(&standard);
  for (int64_t i = 0; i < d->list->n; i++) {
    sn_annotation *a = &d->list->items[i];
    for (int code = 1; code < N_CODES; code++) {
      if (strcmp(a->code, standard.marks[code]) != 0) continue;
      memcpy(a->code, d->marks[code], sizeof a->code);
      break;
    }
  }
}

/* By time, then by place in the file (kept in onset_s until that is filled). */
static int compare_times(const void *x, const void *y) {
  const sn_annotation *a = x, *b = y;
  if (a->sample != b->sample) return a->sample < b->sample ? -1 : 1;
  return a->onset_s < b->onset_s ? -1 : a->onset_s > b->onset_s;
}

static void sort_by_time(sn_annotations *list) {
  bool sorted = true;
  for (int64_t i = 0; i < list->n; i++) {
    list->items[i].onset_s = (double)i;
    sorted &= i == 0 || list->items[i - 1].sample <= list->items[i].sample;
  }
  if (!sorted) qsort(list->items, (size_t)list->n, sizeof *list->items, compare_times);
}

sn_status sn_wfdb_annotations_decode(const void *bytes, int64_t n, const char *name, double rate, bool tolerant,
                                     sn_annotations **out, sn_wfdb_annotation_style *style, sn_error *err) {
  decoder *d = NULL;
  sn_status status;
  sn_error local;
  bool end = false;
  SN_TRY(sn_alloc(&d, 1, sizeof *d, "annotation decoder", err));
  *d = (decoder){.bytes = bytes, .n = n, .name = name, .tolerant = tolerant, .rate = rate};
  default_marks(d);
  SN_TRY_GOTO(sn_alloc(&d->list, 1, sizeof *d->list, "annotations", err), fail);
  while (!end) {
    status = step(d, &end, &local);
    if (status == SN_OK) continue;
    if (status == SN_E_CORRUPT && tolerant) {
      SN_TRY_GOTO(sn_warning_add(&d->list->warnings, &d->list->n_warnings, "annotations_truncated", name, err, "%s; the %lld "
                                 "before it are kept", local.message, (long long)d->list->n),
                  fail);
      break;
    }
    if (err != NULL) *err = local;
    goto fail;
  }
  if (end && d->at < n)
    SN_TRY_GOTO(sn_warning_add(&d->list->warnings, &d->list->n_warnings, "annotation_surplus", name, err,
                               "'%s' has %lld bytes after its end mark at byte %lld; they are not read", name,
                               (long long)(n - d->at), (long long)(d->at - 2)),
                fail);
  take_head(d);
  if (d->defined) rename_codes(d);
  sort_by_time(d->list);
  d->list->rate = d->rate;
  for (int64_t i = 0; i < d->list->n; i++) d->list->items[i].onset_s = (double)d->list->items[i].sample / d->rate;
  d->style.text_counts_zero = d->texts_with_zero > 0;
  if (style != NULL) *style = d->style;
  *out = d->list;
  sn_free(d);
  return SN_OK;
fail:
  sn_annotations_destroy(d->list);
  sn_free(d);
  return status;
}

/* ---- encoding ---- */

static sn_status put_word(sn_string *out, int kind, int value, sn_error *err) {
  int word = kind << 10 | value;
  char bytes[2] = {(char)(word & 0xFF), (char)(word >> 8)};
  return sn_string_append(out, bytes, 2, err);
}

static sn_status put_skip(sn_string *out, int64_t interval, sn_error *err) {
  uint32_t v = (uint32_t)interval;
  char bytes[4] = {(char)(v >> 16), (char)(v >> 24), (char)v, (char)(v >> 8)};
  SN_TRY(put_word(out, SKIP, 0, err));
  return sn_string_append(out, bytes, 4, err);
}

static sn_status put_text(sn_string *out, const char *text, bool counts_zero, sn_error *err) {
  int64_t n = (int64_t)strlen(text) + counts_zero;
  SN_TRY(put_word(out, AUX, (int)n, err));
  SN_TRY(sn_string_append(out, text, n, err));
  return n & 1 ? sn_string_append(out, "", 1, err) : SN_OK;
}

static int code_of(const char *mark) {
  for (int code = 1; code <= LAST_CODE; code++)
    if (MARKS[code] != NULL && strcmp(MARKS[code], mark) == 0) return code;
  int code, used = 0;
  if (sscanf(mark, "[%d]%n", &code, &used) == 1 && mark[used] == '\0' && used > 0 && code > 0 && code < N_CODES) return code;
  return -1;
}

/* The note with the time resolution, then what keeps it apart from a note of the recording at sample 0: a step back by one
 * tick and a code 0 that steps forward again. */
static sn_status put_resolution(sn_string *out, double resolution, sn_error *err) {
  char text[64], number[32];
  sn_format_f64(resolution, number);
  snprintf(text, sizeof text, "%s %s", RESOLUTION, number);
  SN_TRY(put_word(out, NOTE, 0, err));
  SN_TRY(put_text(out, text, false, err));
  SN_TRY(put_skip(out, -1, err));
  return put_word(out, 0, 1, err);
}

typedef struct encoder {
  sn_string *out;
  bool counts_zero;
  int64_t time;
  int32_t channel, number;
} encoder;

static sn_status put_annotation(encoder *e, const sn_annotation *a, int64_t index, sn_error *err) {
  sn_string *out = e->out;
  int code = code_of(a->code);
  int64_t interval = a->sample - e->time;
  if (code < 0)
    return sn_fail(err, SN_E_ARGUMENT, "annotation %lld: '%s' is no WFDB code", (long long)index, a->code);
  if (a->sample < 0 || interval < 0)
    return sn_fail(err, SN_E_ARGUMENT, "annotation %lld at sample %lld stands before its predecessor", (long long)index,
                   (long long)a->sample);
  if (a->subtype < -128 || a->subtype > 127 || a->number < -128 || a->number > 127 || a->channel < 0 || a->channel > 255)
    return sn_fail(err, SN_E_ARGUMENT, "annotation %lld: subtype %d, number %d, channel %d do not fit in a byte",
                   (long long)index, a->subtype, a->number, a->channel);
  if (a->text != NULL && strlen(a->text) > 254)
    return sn_fail(err, SN_E_ARGUMENT, "annotation %lld: a text of %zu bytes, 254 fit", (long long)index, strlen(a->text));
  for (; interval > INT32_MAX; interval -= INT32_MAX) SN_TRY(put_skip(out, INT32_MAX, err));
  if (interval > 0x3FF) {
    SN_TRY(put_skip(out, interval, err));
    interval = 0;
  }
  SN_TRY(put_word(out, code, (int)interval, err));
  if (a->subtype != 0) SN_TRY(put_word(out, SUB, a->subtype & 0xFF, err));
  if (a->channel != e->channel) SN_TRY(put_word(out, CHN, a->channel, err));
  if (a->number != e->number) SN_TRY(put_word(out, NUM, a->number & 0xFF, err));
  if (a->text != NULL && a->text[0] != '\0') SN_TRY(put_text(out, a->text, e->counts_zero, err));
  e->time = a->sample;
  e->channel = a->channel;
  e->number = a->number;
  return SN_OK;
}

sn_status sn_wfdb_annotations_encode(const sn_annotations *list, const sn_wfdb_annotation_style *style, sn_string *out,
                                     sn_error *err) {
  double resolution = style != NULL ? style->time_resolution : 0;
  encoder e = {.out = out, .counts_zero = style != NULL && style->text_counts_zero};
  if (!(resolution >= 0) || !isfinite(resolution))
    return sn_fail(err, SN_E_ARGUMENT, "a time resolution of %g ticks per second", resolution);
  if (resolution > 0) SN_TRY(put_resolution(out, resolution, err));
  for (int64_t i = 0; i < list->n; i++) SN_TRY(put_annotation(&e, &list->items[i], i, err));
  return put_word(out, 0, 0, err);
}

sn_status sn_wfdb_annotations_write(const char *folder, const char *record, const char *which, const sn_annotations *list,
                                    const sn_wfdb_annotation_style *style, sn_error *err) {
  char name[WFDB_NAME];
  char *path = NULL;
  sn_string bytes = {0};
  sn_status status;
  if (snprintf(name, sizeof name, "%s.%s", record, which) >= (int)sizeof name || strpbrk(name, "/\\") != NULL)
    return sn_fail(err, SN_E_ARGUMENT, "'%.60s.%.60s' is no file name", record, which);
  SN_TRY_GOTO(sn_wfdb_annotations_encode(list, style, &bytes, err), done);
  SN_TRY_GOTO(sn_path_join(folder, name, &path, err), done);
  SN_TRY_GOTO(sn_write_file(path, bytes.data, bytes.length, err), done);
done:
  sn_free(path);
  sn_string_free(&bytes);
  return status;
}
