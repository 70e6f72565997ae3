#include "modalities/signal/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

void sn_series_free(sn_series_list *list) {
  sn_free(list->series);
  sn_free(list->terms);
  sn_free(list->commons);
  sn_free(list->channels);
  *list = (sn_series_list){0};
}

static sn_status add_terms(sn_series_list *list, const sn_series_term *terms, int64_t n, int64_t *first, sn_error *err) {
  SN_TRY(sn_grow(&list->terms, &list->terms_capacity, list->n_terms + n, sizeof *list->terms, "series", err));
  *first = list->n_terms;
  for (int64_t i = 0; i < n; i++) list->terms[list->n_terms++] = terms[i];
  return SN_OK;
}

sn_status sn_series_add_common(sn_series_list *list, const sn_series_term *terms, int64_t n_terms, int64_t *common,
                               sn_error *err) {
  sn_series_common added = {.n_terms = n_terms};
  SN_TRY(sn_grow(&list->commons, &list->commons_capacity, list->n_commons + 1, sizeof *list->commons, "series", err));
  SN_TRY(add_terms(list, terms, n_terms, &added.first_term, err));
  *common = list->n_commons;
  list->commons[list->n_commons++] = added;
  return SN_OK;
}

sn_status sn_series_add(sn_series_list *list, const sn_series *series, const sn_series_term *terms, int64_t n_terms,
                        sn_error *err) {
  SN_TRY(sn_grow(&list->series, &list->series_capacity, list->n + 1, sizeof *list->series, "series", err));
  sn_series *added = &list->series[list->n];
  *added = *series;
  added->n_terms = n_terms;
  SN_TRY(add_terms(list, terms, n_terms, &added->first_term, err));
  list->n++;
  return SN_OK;
}

void sn_series_leave_out(sn_series_list *list, const char *channel, const char *why) {
  if (list->n_left_out++ > 0) return;
  snprintf(list->first_left_out, sizeof list->first_left_out, "%.90s: %.60s", channel, why);
}

/* Terms of one combination run at one rate. */
static sn_status check_terms(const sn_series_list *list, const sn_series *series, const sn_recording *recording,
                             sn_error *err) {
  const sn_series_term *own = list->terms + series->first_term;
  const int64_t common = series->common >= 0 ? list->commons[series->common].n_terms : 0;
  if (series->n_terms < 1) return sn_fail(err, SN_E_ARGUMENT, "series %s has no channel", series->name);
  for (int64_t i = 0; i < series->n_terms + common; i++) {
    const int64_t c = i < series->n_terms
                          ? own[i].channel
                          : list->terms[list->commons[series->common].first_term + i - series->n_terms].channel;
    if (c < 0 || c >= recording->n_channels)
      return sn_fail(err, SN_E_ARGUMENT, "series %s: channel %lld of %lld", series->name, (long long)c,
                     (long long)recording->n_channels);
    const sn_channel *channel = &recording->channels[c], *first = &recording->channels[own[0].channel];
    if (channel->samples_per_frame != first->samples_per_frame)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, series->name,
                        "series %s combines channels of different rates: %s and %s", series->name, first->name,
                        channel->name);
  }
  return SN_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp((*(const sn_series *const *)a)->name, (*(const sn_series *const *)b)->name);
}

static sn_status check_names(const sn_series_list *list, sn_error *err) {
  const sn_series **sorted = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&sorted, list->n, sizeof *sorted, "series", err));
  for (int64_t i = 0; i < list->n; i++) sorted[i] = &list->series[i];
  qsort(sorted, (size_t)list->n, sizeof *sorted, compare_names);
  for (int64_t i = 1; i < list->n && status == SN_OK; i++)
    if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
      status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, sorted[i]->name, "%s occurs twice in the recording",
                          sorted[i]->name);
  sn_free(sorted);
  return status;
}

/* The distinct channels, and each term's place among them. */
static sn_status number_channels(sn_series_list *list, const sn_recording *recording, sn_error *err) {
  int64_t *slots = NULL;
  SN_TRY(sn_alloc(&slots, recording->n_channels, sizeof *slots, "series", err));
  for (int64_t i = 0; i < list->n_terms; i++) slots[list->terms[i].channel] = 1;
  sn_free(list->channels);
  list->channels = NULL;
  list->n_channels = 0;
  sn_status status = sn_alloc(&list->channels, recording->n_channels, sizeof *list->channels, "series", err);
  for (int64_t c = 0; c < recording->n_channels && status == SN_OK; c++) {
    if (!slots[c]) continue;
    slots[c] = list->n_channels;
    list->channels[list->n_channels++] = c;
  }
  for (int64_t i = 0; i < list->n_terms && status == SN_OK; i++) list->terms[i].slot = slots[list->terms[i].channel];
  sn_free(slots);
  return status;
}

sn_status sn_series_finish(sn_series_list *list, const sn_recording *recording, sn_error *err) {
  if (list->n == 0) return sn_fail(err, SN_E_ARGUMENT, "no channel of the recording makes tokens");
  list->plain = list->n_commons == 0;
  for (int64_t i = 0; i < list->n; i++) {
    const sn_series *series = &list->series[i];
    SN_TRY(check_terms(list, series, recording, err));
    list->plain = list->plain && series->n_terms == 1 && list->terms[series->first_term].weight == 1.0;
  }
  SN_TRY(check_names(list, err));
  SN_TRY(number_channels(list, recording, err));
  list->plain = list->plain && list->n_channels == list->n;
  return SN_OK;
}
