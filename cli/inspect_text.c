/* needs: full */
/* `sonde inspect` for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/inspect.h"
#include "cli/terminal.h"

enum { FIRST_ANNOTATIONS = 5, VALUES_PER_LINE = 8 };

/* The width of a text on the terminal: characters of UTF-8. */
static int width(const char *text) {
  int n = 0;
  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
  return n;
}

static sn_status put_padded(sn_string *out, const char *text, int columns, sn_error *err) {
  char plain[SN_TERMINAL_TEXT];
  int pad = columns - width(sn_terminal_plain(text, plain));
  return sn_string_printf(out, err, "%s%*s  ", plain, pad > 0 ? pad : 0, "");
}

/* Of the channels, which may differ. */
static sn_status put_rates(const sn_recording *r, sn_string *out, sn_error *err) {
  char slow[32], fast[32];
  double least = INFINITY, most = 0;
  for (int64_t c = 0; c < r->n_channels; c++) {
    least = fmin(least, sn_recording_rate(r, c));
    most = fmax(most, sn_recording_rate(r, c));
  }
  sn_format_f64(least, slow);
  sn_format_f64(most, fast);
  if (least == most) return sn_string_printf(out, err, "  rate       %s Hz\n", fast);
  return sn_string_printf(out, err, "  rate       %s to %s Hz\n", slow, fast);
}

static sn_status put_head(const inspect_result *result, sn_string *out, sn_error *err) {
  const sn_recording *r = result->recording;
  char plain[SN_TERMINAL_TEXT];
  SN_TRY(sn_string_printf(out, err, "%s\n", sn_terminal_plain(result->request->path, plain)));
  SN_TRY(sn_string_printf(out, err, "  format     %s%s%s%s%s\n", r->format, r->variant[0] ? " " : "", sn_terminal_plain(r->variant, plain),
                          r->modality[0] ? ", " : "", r->modality));
  if (r->subject_id[0] != '\0' || !isnan(r->age_years) || r->sex[0] != '\0') {
    SN_TRY(sn_string_printf(out, err, "  subject    %s", r->subject_id[0] ? sn_terminal_plain(r->subject_id, plain) : "(no id)"));
    if (!isnan(r->age_years)) SN_TRY(sn_string_printf(out, err, ", %g years", r->age_years));
    SN_TRY(sn_string_printf(out, err, "%s%s\n", r->sex[0] ? ", " : "", r->sex));
  }
  if (result->request->dates && r->start_time[0] != '\0')
    SN_TRY(sn_string_printf(out, err, "  start      %s\n", r->start_time));
  if (r->reference[0] != '\0') SN_TRY(sn_string_printf(out, err, "  reference  %s\n", sn_terminal_plain(r->reference, plain)));
  if (!isnan(r->line_hz)) SN_TRY(sn_string_printf(out, err, "  mains      %g Hz\n", r->line_hz));
  for (int64_t i = 0; i < r->n_notes; i++)
    SN_TRY(sn_string_printf(out, err, "  %s: %s\n", r->notes[i].name, sn_terminal_plain(r->notes[i].value, plain)));
  if (r->annotations_alone) return sn_string_printf(out, err, "  no signal: annotations alone\n");
  SN_TRY(put_rates(r, out, err));
  SN_TRY(sn_string_printf(out, err, "  duration   %.3f s in %lld segment%s\n", sn_recording_duration(r),
                          (long long)r->n_segments, r->n_segments == 1 ? "" : "s"));
  if (r->n_segments < 2) return SN_OK;
  for (int64_t s = 0; s < r->n_segments && s < 12; s++)
    SN_TRY(sn_string_printf(out, err, "             %10.3f s  +%.3f s\n", r->segments[s].start_s,
                            (double)r->segments[s].n_frames * (double)r->rate_den / (double)r->rate_num));
  if (r->n_segments > 12) SN_TRY(sn_string_printf(out, err, "             ... %lld more\n", (long long)r->n_segments - 12));
  return SN_OK;
}

static sn_status put_channels(const inspect_result *result, sn_string *out, sn_error *err) {
  const sn_recording *r = result->recording;
  bool stats = result->request->stats;
  int names = 4;
  char plain[SN_TERMINAL_TEXT];
  if (r->n_channels == 0) return SN_OK;
  for (int64_t c = 0; c < r->n_channels; c++)
    if (width(sn_terminal_plain(r->channels[c].name, plain)) > names) names = width(plain);
  SN_TRY(sn_string_printf(out, err, "\n    #  %-*s  %-11s  %-6s  %9s  %10s%s\n", names, "name", "kind", "unit", "rate/Hz",
                          "samples", stats ? "     missing           min           max          mean           std" : ""));
  for (int64_t c = 0; c < r->n_channels; c++) {
    const sn_channel *channel = &r->channels[c];
    const inspect_stats *s = &result->channels[c].stats;
    char rate[32];
    snprintf(rate, sizeof rate, "%.6g", sn_recording_rate(r, c));
    SN_TRY(sn_string_printf(out, err, "  %3lld  ", (long long)c));
    SN_TRY(put_padded(out, channel->name, names, err));
    SN_TRY(put_padded(out, sn_sensor_kind_name(channel->kind), 11, err));
    SN_TRY(put_padded(out, channel->unit[0] ? channel->unit : "?", 6, err));
    SN_TRY(sn_string_printf(out, err, "%9s  %10lld", rate, (long long)sn_recording_samples(r, c, -1)));
    if (stats && s->known)
      SN_TRY(sn_string_printf(out, err, "  %10lld  %12.6g  %12.6g  %12.6g  %12.6g", (long long)s->missing, s->min, s->max,
                              s->mean, s->std));
    SN_TRY(sn_string_printf(out, err, "%s%s%s\n", channel->unit_assumed ? "  unit assumed" : "",
                            channel->calibration_assumed ? "  calibration assumed" : "", channel->bad ? "  bad" : ""));
  }
  return SN_OK;
}

static sn_status put_values(const inspect_result *result, sn_string *out, sn_error *err) {
  const sn_recording *r = result->recording;
  for (int64_t c = 0; c < r->n_channels; c++) {
    const inspect_channel *channel = &result->channels[c];
    char plain[SN_TERMINAL_TEXT], unit[SN_TERMINAL_TEXT];
    if (!channel->values_known) continue;
    SN_TRY(sn_string_printf(out, err, "\n  %s, samples %lld to %lld, %s\n", sn_terminal_plain(r->channels[c].name, plain),
                            (long long)result->request->first,
                            (long long)(result->request->first + result->request->count - 1),
                            sn_terminal_plain(r->channels[c].unit, unit)));
    for (int64_t i = 0; i < result->request->count; i++) {
      char number[32];
      sn_format_f64(channel->values[i], number);
      bool last = i % VALUES_PER_LINE == VALUES_PER_LINE - 1 || i + 1 == result->request->count;
      SN_TRY(sn_string_printf(out, err, "%s%s%s", i % VALUES_PER_LINE == 0 ? "    " : " ", number, last ? "\n" : ""));
    }
  }
  return SN_OK;
}

static sn_status put_annotations(const inspect_result *result, sn_string *out, sn_error *err) {
  const sn_annotations *list = result->annotations;
  if (list == NULL || list->n == 0) return SN_OK;
  int64_t shown = result->request->all_annotations || list->n < FIRST_ANNOTATIONS ? list->n : FIRST_ANNOTATIONS;
  SN_TRY(sn_string_printf(out, err, "\n  %lld annotation%s\n", (long long)list->n, list->n == 1 ? "" : "s"));
  for (int64_t i = 0; i < shown; i++) {
    const sn_annotation *a = &list->items[i];
    const char *text = a->text == NULL || strcmp(a->text, a->code) == 0 ? "" : a->text; /* one of them, if they are the same */
    char code[SN_TERMINAL_TEXT], plain[SN_TERMINAL_TEXT];
    SN_TRY(sn_string_printf(out, err, "    %12.3f s  ", a->onset_s));
    if (!isnan(a->duration_s)) SN_TRY(sn_string_printf(out, err, "+%.3f s  ", a->duration_s));
    SN_TRY(sn_string_printf(out, err, "%-4s%s%s\n", sn_terminal_plain(a->code, code), text[0] ? "  " : "",
                            sn_terminal_plain(text, plain)));
  }
  if (shown < list->n)
    SN_TRY(sn_string_printf(out, err, "    ... %lld more (--annotations lists all)\n", (long long)(list->n - shown)));
  return SN_OK;
}

static sn_status put_warnings(const sn_warning *list, int64_t n, sn_string *out, sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    SN_TRY(sn_string_printf(out, err, "  warning: %s", list[i].message));
    if (list[i].count > 1) SN_TRY(sn_string_printf(out, err, " (and %lld more)", (long long)list[i].count - 1));
    SN_TRY(sn_string_printf(out, err, " [%s]\n", list[i].code));
  }
  return SN_OK;
}

sn_status sn_inspect_write_text(const inspect_result *result, sn_string *out, sn_error *err) {
  const sn_recording *r = result->recording;
  const sn_annotations *a = result->annotations;
  if (r == NULL) return SN_OK;
  SN_TRY(put_head(result, out, err));
  SN_TRY(put_channels(result, out, err));
  if (result->request->values) SN_TRY(put_values(result, out, err));
  SN_TRY(put_annotations(result, out, err));
  if (r->n_warnings > 0 || (a != NULL && a->n_warnings > 0)) SN_TRY(sn_string_append(out, "\n", 1, err));
  SN_TRY(put_warnings(r->warnings, r->n_warnings, out, err));
  return a != NULL ? put_warnings(a->warnings, a->n_warnings, out, err) : SN_OK;
}
