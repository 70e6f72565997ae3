/* Annotations: time-stamped lists (TAL, EDF+ 2.2.2) and the changes of trigger words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/formats/edf/edf_parts.h"
#include "modalities/signal/event.h"

enum { CHUNK = 4096, TIME_BYTES = 128, DURATION_MARK = 0x15, TEXT_END = 0x14 };

/* ---- one list: onset [0x15 duration] 0x14 text 0x14 text 0x14 ... 0x00 ---- */

typedef struct tal {
  int64_t onset_ns, duration_ns;
  bool has_duration;
  int64_t text, end; /* positions: of the first text, behind the last 0x14 */
} tal;

/* The list that begins at bytes[at], which ends before `limit` (at its 0 byte, or where the bytes do). NULL, or what is
 * wrong. */
static const char *parse_list(const uint8_t *bytes, int64_t at, int64_t limit, tal *t) {
  int64_t mark = at;
  while (mark < limit && bytes[mark] != TEXT_END && bytes[mark] != DURATION_MARK) mark++;
  if (mark == limit) return "has no end";
  if (!sn_edf_parse_time((const char *)bytes + at, mark - at, &t->onset_ns)) return "has an onset that is no number";
  t->has_duration = bytes[mark] == DURATION_MARK;
  if (t->has_duration) {
    int64_t from = mark + 1;
    for (mark = from; mark < limit && bytes[mark] != TEXT_END;) mark++;
    if (mark == limit) return "has no end";
    if (mark == from) t->has_duration = false; /* 0x15 without a number: some writers leave it */
    else if (!sn_edf_parse_time((const char *)bytes + from, mark - from, &t->duration_ns) || t->duration_ns < 0)
      return "has a duration that is no number";
  }
  t->text = mark + 1;
  for (t->end = limit; t->end > t->text && bytes[t->end - 1] != TEXT_END;) t->end--;
  return NULL;
}

sn_status sn_edf_record_time(const edf_file *f, int64_t record, int64_t *ns, bool *found, sn_error *err) {
  uint8_t bytes[TIME_BYTES];
  tal t;
  *found = false;
  for (int64_t i = 0; i < f->header->n_signals; i++) {
    const edf_signal *s = &f->header->signals[i];
    if (!s->annotations) continue;
    int64_t n = s->n * f->header->width < TIME_BYTES ? s->n * f->header->width : TIME_BYTES;
    SN_TRY(sn_stream_read_exact(f->stream, sn_edf_record_at(f, record) + s->offset, bytes, n, err));
    const uint8_t *end = memchr(bytes, 0, (size_t)n);
    const int64_t limit = end != NULL ? end - bytes : n;
    if (parse_list(bytes, 0, limit, &t) != NULL) return SN_OK;
    /* Its first text is empty. */
    *found = t.text < limit && bytes[t.text] == TEXT_END;
    *ns = t.onset_ns;
    return SN_OK;
  }
  return SN_OK;
}

/* ---- the list that is being made ---- */

typedef struct making {
  const edf_file *f;
  const sn_recording *r;
  const char *name;
  sn_annotations *list;
  int64_t room;
  int64_t start_ns;           /* of the recording on the header's clock */
  int64_t rate_num, rate_den; /* ticks of `sample` */
} making;

static sn_status add(making *m, int64_t onset_ns, sn_annotation **out, sn_error *err) {
  SN_TRY(sn_grow(&m->list->items, &m->room, m->list->n + 1, sizeof *m->list->items, "annotations", err));
  sn_annotation *a = &m->list->items[m->list->n++];
  memset(a, 0, sizeof *a);
  a->onset_s = (double)onset_ns / (double)EDF_SECOND;
  a->sample = sn_event_resample(onset_ns, EDF_SECOND, 1, m->rate_num, m->rate_den);
  a->duration_s = NAN;
  a->channel = -1;
  *out = a;
  return SN_OK;
}

/* "text@@LABEL": the annotation is of that channel. */
static void take_channel(const making *m, sn_annotation *a) {
  char *mark = strstr(a->text, "@@");
  if (mark == NULL) return;
  for (int64_t c = 0; c < m->r->n_channels; c++) {
    if (strcmp(m->r->channels[c].raw_name, mark + 2) != 0) continue;
    a->channel = (int32_t)c;
    *mark = '\0';
    return;
  }
}

/* One text of a list; at: its byte in the file. */
static sn_status add_text(making *m, const tal *t, const uint8_t *bytes, int64_t n, int64_t at, sn_error *err) {
  sn_annotation *a;
  bool converted = false;
  if (n == 0) return SN_OK;
  SN_TRY(add(m, t->onset_ns - m->start_ns, &a, err));
  if (t->has_duration) a->duration_s = (double)t->duration_ns / (double)EDF_SECOND;
  SN_TRY(sn_text_to_utf8((const char *)bytes, n, &a->text, &converted, err));
  take_channel(m, a);
  if (strlen(a->text) < sizeof a->code) snprintf(a->code, sizeof a->code, "%s", a->text);
  if (!converted) return SN_OK;
  return sn_warning_add(&m->list->warnings, &m->list->n_warnings, "text_encoding", "annotation", err,
                        "'%s' byte %lld: an annotation is not UTF-8; read as Latin-1", m->name,
                        (long long)(at + sn_utf8_error((const char *)bytes, n)));
}

static sn_status bad_list(making *m, int64_t at, const char *problem, sn_error *err) {
  if (!m->f->tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "annotations", "'%s' byte %lld: a list of annotations %s", m->name,
                      (long long)at, problem);
  return sn_warning_add(&m->list->warnings, &m->list->n_warnings, "tal", "annotations", err,
                        "'%s' byte %lld: a list of annotations %s", m->name, (long long)at, problem);
}

/* All lists in the n bytes of one annotation signal in one record. first: the record's time-keeping list is the first one.
 * at: of bytes[0] in the file. */
static sn_status take_lists(making *m, const uint8_t *bytes, int64_t n, int64_t at, sn_error *err) {
  for (int64_t begin = 0; begin < n;) {
    if (bytes[begin] == 0) {
      begin++;
      continue;
    }
    const uint8_t *end = memchr(bytes + begin, 0, (size_t)(n - begin));
    const int64_t limit = end != NULL ? end - bytes : n;
    tal t;
    const char *problem = parse_list(bytes, begin, limit, &t);
    if (problem == NULL && (end == NULL || t.end != limit)) problem = "has no end"; /* the texts that end are taken */
    else if (problem != NULL) t.text = t.end = 0;
    if (problem != NULL) SN_TRY(bad_list(m, at + begin, problem, err));
    for (int64_t text = t.text; text < t.end;) {
      const uint8_t *stop = memchr(bytes + text, TEXT_END, (size_t)(t.end - text));
      const int64_t length = stop - (bytes + text);
      SN_TRY(add_text(m, &t, bytes + text, length, at + text, err));
      text += length + 1;
    }
    begin = limit + 1;
  }
  return SN_OK;
}

static sn_status take_annotations(making *m, sn_error *err) {
  const edf_file *f = m->f;
  const edf_header *h = f->header;
  uint8_t *bytes = NULL;
  int64_t most = 0;
  for (int64_t i = 0; i < h->n_signals; i++)
    if (h->signals[i].annotations && h->signals[i].n > most) most = h->signals[i].n;
  if (most == 0) return SN_OK;
  SN_TRY(sn_alloc(&bytes, most, h->width, "annotations", err)); /* no more than a record, and those are there */
  sn_status status = SN_OK;
  for (int64_t record = 0; record < f->n_records; record++) {
    for (int64_t i = 0; i < h->n_signals; i++) {
      const edf_signal *s = &h->signals[i];
      if (!s->annotations) continue;
      const int64_t at = sn_edf_record_at(f, record) + s->offset;
      SN_TRY_GOTO(sn_stream_read_exact(f->stream, at, bytes, s->n * h->width, err), done);
      SN_TRY_GOTO(take_lists(m, bytes, s->n * h->width, at, err), done);
    }
  }
done:
  sn_free(bytes);
  return status;
}

/* ---- triggers ---- */

typedef struct flags {
  int64_t n, no_cms, battery;
  bool written; /* any of bits 16 to 23 was ever set */
} flags;

static sn_status add_trigger(making *m, int64_t channel, int64_t segment, int64_t sample, int32_t value, sn_error *err) {
  sn_annotation *a;
  const edf_file *f = m->f;
  const double rate = sn_recording_rate(m->r, channel);
  const int64_t segment_ns = f->segment_ns[segment] - m->start_ns;
  SN_TRY(add(m, segment_ns, &a, err));
  a->onset_s = (double)segment_ns / (double)EDF_SECOND + (double)sample / rate;
  a->sample = sn_event_index(a->onset_s, m->list->rate);
  a->channel = (int32_t)channel;
  a->number = value;
  snprintf(a->code, sizeof a->code, "%d", value);
  return SN_OK;
}

static sn_status scan_segment(making *m, int64_t channel, int64_t segment, flags *seen, sn_error *err) {
  const double rate = sn_recording_rate(m->r, channel);
  const int64_t total = sn_recording_samples(m->r, channel, segment);
  int64_t open = -1, open_since = 0; /* the event whose value still stands */
  int32_t before = 0, words[CHUNK];
  for (int64_t at = 0; at < total; at += CHUNK) {
    const int64_t n = total - at < CHUNK ? total - at : CHUNK;
    SN_TRY(sn_recording_read_stored(m->r, channel, segment, at, n, words, err));
    for (int64_t i = 0; i < n; i++) {
      seen->no_cms += (words[i] >> 20 & 1) == 0;
      seen->battery += words[i] >> 22 & 1;
      seen->written |= (words[i] >> 16) != 0;
      const int32_t value = words[i] & 0xFFFF;
      if (at + i == 0) {
        before = value;
        if (value != 0)
          SN_TRY(sn_warning_add(&m->list->warnings, &m->list->n_warnings, "trigger_at_start", m->r->channels[channel].name,
                                err, "'%s': segment %lld begins with trigger %d, which is not counted as a change", m->name,
                                (long long)segment, value));
      }
      if (value == before) continue;
      before = value;
      if (open >= 0) m->list->items[open].duration_s = (double)(at + i - open_since) / rate;
      open = -1;
      if (value == 0) continue;
      SN_TRY(add_trigger(m, channel, segment, at + i, value, err));
      open = m->list->n - 1;
      open_since = at + i;
    }
  }
  seen->n += total;
  if (open >= 0) m->list->items[open].duration_s = (double)(total - open_since) / rate;
  return SN_OK;
}

static sn_status take_triggers(making *m, sn_error *err) {
  for (int64_t c = 0; c < m->r->n_channels; c++) {
    if (!m->f->trigger[c]) continue;
    const char *channel = m->r->channels[c].name;
    flags seen = {0};
    for (int64_t s = 0; s < m->r->n_segments; s++) SN_TRY(scan_segment(m, c, s, &seen, err));
    if (!seen.written) continue;
    if (seen.no_cms > 0)
      SN_TRY(sn_warning_add(&m->list->warnings, &m->list->n_warnings, "cms_out_of_range", channel, err,
                            "'%s': CMS is not in range in %lld of %lld samples", m->name, (long long)seen.no_cms,
                            (long long)seen.n));
    if (seen.battery > 0)
      SN_TRY(sn_warning_add(&m->list->warnings, &m->list->n_warnings, "battery_low", channel, err,
                            "'%s': the battery is low in %lld of %lld samples", m->name, (long long)seen.battery,
                            (long long)seen.n));
  }
  return SN_OK;
}

/* ---- together, in time order ---- */

/* Stable: equal onsets keep the file's order, which `subtype` holds while sorting. */
static int by_onset(const void *a, const void *b) {
  const sn_annotation *x = a, *y = b;
  if (x->onset_s != y->onset_s) return x->onset_s < y->onset_s ? -1 : 1;
  return (x->subtype > y->subtype) - (x->subtype < y->subtype);
}

static sn_status sort(sn_annotations *list, sn_error *err) {
  if (list->n > INT32_MAX) return sn_fail(err, SN_E_UNSUPPORTED, "%lld annotations", (long long)list->n);
  for (int64_t i = 0; i < list->n; i++) list->items[i].subtype = (int32_t)i;
  if (list->n > 1) qsort(list->items, (size_t)list->n, sizeof *list->items, by_onset);
  for (int64_t i = 0; i < list->n; i++) list->items[i].subtype = 0;
  return SN_OK;
}

sn_status sn_edf_annotations(const edf_file *f, const sn_recording *r, const char *which, sn_annotations **out,
                             sn_error *err) {
  making m = {.f = f, .r = r, .name = sn_path_base(sn_stream_name(f->stream)), .rate_num = 1000, .rate_den = 1};
  sn_status status;
  const bool tal_too = which == NULL || strcmp(which, "tal") == 0, triggers = which == NULL || strcmp(which, "trigger") == 0;
  if (!tal_too && !triggers)
    return sn_fail(err, SN_E_ARGUMENT, "EDF files have the annotations 'tal' and 'trigger', not '%s'", which);
  SN_TRY(sn_alloc(&m.list, 1, sizeof *m.list, "annotations", err));
  if (f->n_segments > 0) m.start_ns = f->segment_ns[0];
  if (f->n_channels > 0) {
    m.rate_num = r->rate_num * (f->fastest / f->frames);
    m.rate_den = r->rate_den;
  }
  m.list->rate = (double)m.rate_num / (double)m.rate_den;
  if (tal_too) SN_TRY_GOTO(take_annotations(&m, err), fail);
  if (triggers) SN_TRY_GOTO(take_triggers(&m, err), fail);
  SN_TRY_GOTO(sort(m.list, err), fail);
  *out = m.list;
  return SN_OK;
fail:
  sn_annotations_destroy(m.list);
  return status;
}
