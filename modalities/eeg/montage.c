#include "modalities/eeg/montage.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"

static const struct {
  const char *name, *pairs;
} CHAINS[] = {
    {"double-banana",
     "Fp1-F7,F7-T7,T7-P7,P7-O1,Fp2-F8,F8-T8,T8-P8,P8-O2,Fp1-F3,F3-C3,C3-P3,P3-O1,Fp2-F4,F4-C4,C4-P4,P4-O2,Fz-Cz,Cz-Pz"},
    {"tcp",
     "Fp1-F7,F7-T7,T7-P7,P7-O1,Fp2-F8,F8-T8,T8-P8,P8-O2,A1-T7,T7-C3,C3-Cz,Cz-C4,C4-T8,T8-A2,Fp1-F3,F3-C3,C3-P3,P3-O1,"
     "Fp2-F4,F4-C4,C4-P4,P4-O2"},
    {"transverse",
     "F7-Fp1,Fp1-Fp2,Fp2-F8,F7-F3,F3-Fz,Fz-F4,F4-F8,T7-C3,C3-Cz,Cz-C4,C4-T8,P7-P3,P3-Pz,Pz-P4,P4-P8,P7-O1,O1-O2,"
     "O2-P8"},
};
enum { N_CHAINS = sizeof CHAINS / sizeof *CHAINS };

/* --- the text of a setting --- */

static sn_status no_such_word(const char *text, sn_error *err) {
  static const char *const WORDS[] = {"as-is", "average", "linked-ears", "double-banana", "tcp", "transverse"};
  const char *nearest = sn_nearest_name(text, WORDS, 6);
  return sn_fail(err, SN_E_ARGUMENT,
                 "reference \"%.60s\" is not known; as-is, average, linked-ears, double-banana, tcp, transverse, "
                 "electrodes (Cz, A1+A2) or pairs (Fp1-F7,F7-T7) are%s%s",
                 text, nearest != NULL ? "; nearest: " : "", nearest != NULL ? nearest : "");
}

/* The next part of text up to a separator, trimmed; NULL at the end. */
static const char *next_part(char part[SN_CHANNEL_NAME], const char *text, char separator) {
  const char *end = strchr(text, separator);
  size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
  if (n >= SN_CHANNEL_NAME) n = SN_CHANNEL_NAME - 1;
  memcpy(part, text, n);
  part[n] = '\0';
  return end != NULL ? end + 1 : NULL;
}

static sn_status parse_names(sn_reference_options *out, const char *text, sn_error *err) {
  char part[SN_CHANNEL_NAME];
  out->kind = SN_REFERENCE_NAMED;
  for (const char *p = text; p != NULL;) {
    sn_channel_name name;
    p = next_part(part, p, '+');
    sn_channel_name_parse(&name, part);
    if (name.electrode < 0) return no_such_word(text, err);
    if (out->n_names == SN_MONTAGE_NAMES)
      return sn_fail(err, SN_E_ARGUMENT, "reference \"%.60s\" names more than %d electrodes", text, SN_MONTAGE_NAMES);
    for (int64_t i = 0; i < out->n_names; i++)
      if (strcmp(out->names[i], name.name) == 0)
        return sn_fail(err, SN_E_ARGUMENT, "reference \"%.60s\" names %s twice", text, name.name);
    snprintf(out->names[out->n_names++], SN_MONTAGE_NAME, "%.15s", name.name);
  }
  return SN_OK;
}

static sn_status parse_pairs(sn_reference_options *out, const char *text, sn_error *err) {
  char part[SN_CHANNEL_NAME];
  out->kind = SN_REFERENCE_BIPOLAR;
  for (const char *p = text; p != NULL;) {
    sn_channel_name name;
    p = next_part(part, p, ',');
    sn_channel_name_parse(&name, part);
    if (name.pair[0] < 0 || name.pair[1] < 0)
      return sn_fail(err, SN_E_ARGUMENT, "reference: \"%.60s\" is no pair of electrodes (Fp1-F7)", part);
    if (name.pair[0] == name.pair[1])
      return sn_fail(err, SN_E_ARGUMENT, "reference: the pair \"%.60s\" is one electrode with itself", part);
    if (out->n_pairs == SN_MONTAGE_PAIRS)
      return sn_fail(err, SN_E_ARGUMENT, "reference: more than %d pairs", SN_MONTAGE_PAIRS);
    for (int64_t i = 0; i < out->n_pairs; i++)
      if (strcmp(out->pairs[i][0], name.part[0]) == 0 && strcmp(out->pairs[i][1], name.part[1]) == 0)
        return sn_fail(err, SN_E_ARGUMENT, "reference: the pair %s is there twice", name.name);
    for (int k = 0; k < 2; k++) snprintf(out->pairs[out->n_pairs][k], SN_MONTAGE_NAME, "%.15s", name.part[k]);
    out->n_pairs++;
  }
  return SN_OK;
}

sn_status sn_reference_parse(sn_reference_options *out, const char *text, sn_error *err) {
  *out = (sn_reference_options){0};
  while (*text == ' ') text++;
  if (sn_equal_nocase(text, "as-is")) return SN_OK;
  if (sn_equal_nocase(text, "average")) {
    out->kind = SN_REFERENCE_AVERAGE;
    return SN_OK;
  }
  if (sn_equal_nocase(text, "linked-ears")) return parse_names(out, "A1+A2", err);
  for (int i = 0; i < N_CHAINS; i++)
    if (sn_equal_nocase(text, CHAINS[i].name)) return parse_pairs(out, CHAINS[i].pairs, err);
  if (strchr(text, ',') != NULL) return parse_pairs(out, text, err);
  sn_channel_name name;
  sn_channel_name_parse(&name, text);
  if (name.flags & SN_NAME_BIPOLAR) return parse_pairs(out, text, err);
  return parse_names(out, text, err);
}

/* --- from channels to series --- */

/* A series before it is put into the list. */
typedef struct plan {
  char name[SN_CHANNEL_NAME];
  sn_sensor_kind kind;
  int64_t n_terms;
  sn_series_term terms[2];
  bool referenced;
} plan;

typedef struct workspace {
  const sn_recording *recording;
  const sn_montage_options *options;
  bool planning;
  sn_channel_name *names; /* (n_channels) of the cleaned names */
  plan *plans;
  int64_t n_plans;
  int64_t common; /* of the list, -1 */
  sn_series_list *list;
} workspace;

static bool is_kind_wanted(const sn_montage_options *o, sn_sensor_kind kind) {
  return (o->eeg && kind == SN_SENSOR_EEG) || (o->meg_mag && kind == SN_SENSOR_MEG_MAG) ||
         (o->meg_grad && kind == SN_SENSOR_MEG_GRAD);
}

static bool is_bad(const workspace *w, int64_t c) { return !w->planning && w->recording->channels[c].bad; }

static bool is_first_of_name(const workspace *w, int64_t c) { return !(w->names[c].flags & SN_NAME_DUPLICATE); }

/* An electrode against the file's reference: what may enter a reference or a difference. */
static bool is_monopolar_eeg(const workspace *w, int64_t c) {
  return w->recording->channels[c].kind == SN_SENSOR_EEG && !(w->names[c].flags & SN_NAME_BIPOLAR) &&
         is_first_of_name(w, c);
}

static bool is_ear(const workspace *w, int64_t c) {
  return w->names[c].electrode >= 0 && sn_electrode_system_of(w->names[c].electrode) == SN_SYSTEM_EAR;
}

static int64_t find_electrode(const workspace *w, int64_t electrode, bool good) {
  for (int64_t c = 0; c < w->recording->n_channels; c++)
    if (electrode >= 0 && w->names[c].electrode == electrode && is_monopolar_eeg(w, c) && !(good && is_bad(w, c)))
      return c;
  return -1;
}

/* The electrode, or the ear or mastoid of its side. */
static int64_t find_or_stand_in(const workspace *w, const char *name, bool good) {
  int64_t electrode = sn_electrode_find(name), c = find_electrode(w, electrode, good);
  return c >= 0 ? c : find_electrode(w, sn_electrode_stand_in(electrode), good);
}

static void add_plan(workspace *w, const char *name, sn_sensor_kind kind, int64_t a, double weight_a, int64_t b,
                     bool referenced) {
  plan *p = &w->plans[w->n_plans++];
  *p = (plan){.kind = kind, .n_terms = b >= 0 ? 2 : 1, .referenced = referenced};
  snprintf(p->name, sizeof p->name, "%s", name);
  p->terms[0] = (sn_series_term){.channel = a, .weight = weight_a};
  if (b >= 0) p->terms[1] = (sn_series_term){.channel = b, .weight = -1.0};
}

/* BioSemi pins get the electrode of the cap that was asked for. Returns whether any name changed. */
static void name_pins(workspace *w) {
  if (w->options->place.biosemi_cap == 0) return;
  for (int64_t c = 0; c < w->recording->n_channels; c++) {
    int64_t electrode = sn_biosemi_electrode(w->names[c].name, w->options->place.biosemi_cap);
    if (electrode < 0 || w->recording->channels[c].kind != SN_SENSOR_EEG) continue;
    w->names[c].electrode = (int32_t)electrode;
    w->names[c].flags &= ~(uint32_t)(SN_NAME_UNKNOWN | SN_NAME_EAR);
    snprintf(w->names[c].name, sizeof w->names[c].name, "%s", sn_electrode_name(electrode));
  }
}

/* Channels that may make a series of their own; others are counted. */
static bool may_stand(workspace *w, int64_t c) {
  const sn_channel *channel = &w->recording->channels[c];
  if (!is_kind_wanted(w->options, channel->kind)) return false;
  if (!is_first_of_name(w, c)) {
    sn_series_leave_out(w->list, w->names[c].name, "an earlier channel has this name");
    return false;
  }
  if (is_bad(w, c) && !w->options->keep_bad) {
    w->list->n_bad++;
    return false;
  }
  return true;
}

static sn_status add_reference(workspace *w, const int64_t *channels, int64_t n, sn_error *err) {
  sn_series_term *terms = NULL;
  SN_TRY(sn_alloc(&terms, n, sizeof *terms, "terms of a reference", err));
  for (int64_t i = 0; i < n; i++) terms[i] = (sn_series_term){.channel = channels[i], .weight = 1.0 / (double)n};
  sn_status status = sn_series_add_common(w->list, terms, n, &w->common, err);
  sn_free(terms);
  return status;
}

static sn_status average_reference(workspace *w, sn_error *err) {
  sn_status status;
  int64_t *members = NULL, n = 0, n_eeg = 0;
  SN_TRY(sn_alloc(&members, w->recording->n_channels, sizeof *members, "members of the average", err));
  for (int64_t c = 0; c < w->recording->n_channels; c++) {
    n_eeg += w->recording->channels[c].kind == SN_SENSOR_EEG;
    if (is_monopolar_eeg(w, c) && !is_bad(w, c) && !is_ear(w, c)) members[n++] = c;
  }
  if (n_eeg == 0 || !w->options->eeg)
    status = SN_OK; /* MEG alone: nothing to reference */
  else if (n < 2)
    status = sn_fail(err, SN_E_ARGUMENT,
                     "average reference: %lld good EEG electrodes of %lld EEG channels; at least 2 are needed "
                     "(channels that are differences have no reference: use as-is)",
                     (long long)n, (long long)n_eeg);
  else
    status = add_reference(w, members, n, err);
  sn_free(members);
  return status;
}

static sn_status named_reference(workspace *w, int64_t channels[SN_MONTAGE_NAMES], sn_error *err) {
  const sn_reference_options *o = &w->options->reference;
  bool any_eeg = false;
  for (int64_t c = 0; c < w->recording->n_channels; c++)
    any_eeg = any_eeg || w->recording->channels[c].kind == SN_SENSOR_EEG;
  for (int64_t i = 0; i < o->n_names; i++) channels[i] = -1;
  if (!any_eeg || !w->options->eeg) return SN_OK;
  for (int64_t i = 0; i < o->n_names; i++) {
    channels[i] = find_or_stand_in(w, o->names[i], true);
    if (channels[i] < 0)
      return sn_fail(err, SN_E_ARGUMENT,
                     "reference electrode %s is not among the channels, or is marked bad%s%s; name another reference, "
                     "or average",
                     o->names[i],
                     w->recording->reference[0] != '\0' ? "; the file says that it is recorded against " : "",
                     w->recording->reference);
    for (int64_t k = 0; k < i; k++)
      if (channels[k] == channels[i])
        return sn_fail(err, SN_E_ARGUMENT, "reference electrodes %s and %s are the same channel here", o->names[k],
                       o->names[i]);
  }
  return add_reference(w, channels, o->n_names, err);
}

static sn_status plan_monopolar(workspace *w, sn_error *err) {
  sn_reference_kind kind = w->options->reference.kind;
  int64_t reference[SN_MONTAGE_NAMES] = {0}, n_reference = 0;
  if (kind == SN_REFERENCE_AVERAGE) SN_TRY(average_reference(w, err));
  if (kind == SN_REFERENCE_NAMED) {
    SN_TRY(named_reference(w, reference, err));
    n_reference = w->options->reference.n_names;
  }
  for (int64_t c = 0; c < w->recording->n_channels; c++) {
    if (!may_stand(w, c)) continue;
    bool own = false, referenced = w->common >= 0 && is_monopolar_eeg(w, c);
    for (int64_t i = 0; i < n_reference; i++) own = own || reference[i] == c;
    if (own || (kind == SN_REFERENCE_AVERAGE && referenced && is_ear(w, c))) {
      sn_series_leave_out(w->list, w->names[c].name, own ? "it is the reference" : "an ear is no scalp electrode");
      continue;
    }
    add_plan(w, w->names[c].name, w->recording->channels[c].kind, c, 1.0, -1, referenced);
  }
  return SN_OK;
}

static void plan_pairs(workspace *w) {
  const sn_reference_options *o = &w->options->reference;
  bool good = !w->options->keep_bad;
  for (int64_t i = 0; i < o->n_pairs && w->options->eeg; i++) {
    char name[2 * SN_MONTAGE_NAME + 2];
    int64_t a = sn_electrode_find(o->pairs[i][0]), b = sn_electrode_find(o->pairs[i][1]), recorded = -1;
    double weight = 1.0;
    snprintf(name, sizeof name, "%s-%s", o->pairs[i][0], o->pairs[i][1]);
    for (int64_t c = 0; c < w->recording->n_channels && recorded < 0; c++) {
      const sn_channel_name *n = &w->names[c];
      if (w->recording->channels[c].kind != SN_SENSOR_EEG || !is_first_of_name(w, c) || (good && is_bad(w, c)))
        continue;
      if (n->pair[0] == a && n->pair[1] == b) recorded = c;
      if (n->pair[0] == b && n->pair[1] == a) recorded = c, weight = -1.0;
    }
    if (recorded >= 0) {
      add_plan(w, name, SN_SENSOR_EEG, recorded, weight, -1, false);
      continue;
    }
    int64_t first = find_or_stand_in(w, o->pairs[i][0], good), second = find_or_stand_in(w, o->pairs[i][1], good);
    if (first >= 0 && second >= 0 && first != second)
      add_plan(w, name, SN_SENSOR_EEG, first, 1.0, second, false);
    else
      sn_series_leave_out(w->list, name, "an electrode of the pair is not there, or marked bad");
  }
  for (int64_t c = 0; c < w->recording->n_channels; c++) {
    sn_sensor_kind kind = w->recording->channels[c].kind;
    if (kind == SN_SENSOR_EEG) {
      if (w->options->eeg && is_first_of_name(w, c) && is_bad(w, c)) w->list->n_bad++;
    } else if (may_stand(w, c)) {
      add_plan(w, w->names[c].name, kind, c, 1.0, -1, false);
    }
  }
}

/* Position of a plan, false: none. */
static bool place(const workspace *w, const plan *p, double position[3]) {
  const sn_place_options *o = &w->options->place;
  double other[3];
  sn_channel channel = w->recording->channels[p->terms[0].channel];
  if (p->kind != SN_SENSOR_EEG) {
    memcpy(position, channel.position_m, sizeof channel.position_m);
    return channel.has_position && channel.frame == SN_FRAME_HEAD;
  }
  if (sn_layout_position(position, &channel, o) == SN_POSITION_UNKNOWN) return false;
  if (p->n_terms == 1) return true;
  channel = w->recording->channels[p->terms[1].channel];
  if (sn_layout_position(other, &channel, o) == SN_POSITION_UNKNOWN) return false;
  for (int i = 0; i < 3; i++) position[i] = 0.5 * (position[i] + other[i]);
  return true;
}

static sn_status put_series(workspace *w, const plan *p, sn_error *err) {
  const sn_channel *channel = &w->recording->channels[p->terms[0].channel];
  sn_series series = {.id = sn_name_number(p->name), .kind = p->kind, .common = p->referenced ? w->common : -1};
  snprintf(series.name, sizeof series.name, "%s", p->name);
  snprintf(series.unit, sizeof series.unit, "%s", channel->unit);
  if (!w->planning) {
    series.has_position = place(w, p, series.position_m);
    if (!series.has_position) memset(series.position_m, 0, sizeof series.position_m);
    if (!series.has_position && w->options->place.policy == SN_PLACE_DROP) {
      sn_series_leave_out(w->list, p->name, "no position is known");
      return SN_OK;
    }
    if (!series.has_position && w->options->place.policy == SN_PLACE_REFUSE)
      return sn_fail_at(
          err, SN_E_ARGUMENT, -1, -1, p->name,
          "channel %.60s (\"%.60s\", %s) has no position: the file states none in the head frame and the "
          "name is no electrode of the 10-05 system; give electrodes.tsv, leave the channel out, or allow "
          "channels without a position",
          p->name, channel->raw_name, sn_sensor_kind_name(p->kind));
    if (channel->has_orientation && p->kind != SN_SENSOR_EEG)
      memcpy(series.orientation, channel->orientation, sizeof series.orientation);
  }
  return sn_series_add(w->list, &series, p->terms, p->n_terms, err);
}

static sn_status put_all(workspace *w, sn_error *err) {
  for (int64_t k = 0; k < w->options->n_wanted; k++) {
    sn_channel_name wanted;
    sn_channel_name_parse(&wanted, w->options->wanted[k]);
    for (int64_t i = 0; i < w->n_plans; i++)
      if (strcasecmp(w->plans[i].name, wanted.name) == 0 || strcmp(w->plans[i].name, w->options->wanted[k]) == 0) {
        SN_TRY(put_series(w, &w->plans[i], err));
        break;
      }
  }
  for (int64_t i = 0; i < w->n_plans && w->options->n_wanted == 0; i++) SN_TRY(put_series(w, &w->plans[i], err));
  if (w->list->n > 0) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT,
                 "no series is left of this recording: %lld channels, %lld of them bad, %lld left out%s%s",
                 (long long)w->recording->n_channels, (long long)w->list->n_bad, (long long)w->list->n_left_out,
                 w->list->n_left_out > 0 ? "; the first: " : "", w->list->first_left_out);
}

sn_status sn_montage_select(const sn_recording *recording, const sn_montage_options *options, bool planning,
                            sn_series_list *out, sn_error *err) {
  sn_status status;
  const char **raw = NULL;
  int64_t n = recording->n_channels;
  workspace w = {.recording = recording, .options = options, .planning = planning, .common = -1, .list = out};
  SN_TRY_GOTO(sn_alloc(&raw, n, sizeof *raw, "montage", err), done);
  SN_TRY_GOTO(sn_alloc(&w.names, n, sizeof *w.names, "montage", err), done);
  SN_TRY_GOTO(sn_alloc(&w.plans, n + SN_MONTAGE_PAIRS, sizeof *w.plans, "montage", err), done);
  for (int64_t c = 0; c < n; c++) raw[c] = recording->channels[c].name;
  SN_TRY_GOTO(sn_channel_names_parse(w.names, raw, n, err), done);
  name_pins(&w);
  if (options->reference.kind == SN_REFERENCE_BIPOLAR)
    plan_pairs(&w);
  else
    SN_TRY_GOTO(plan_monopolar(&w, err), done);
  SN_TRY_GOTO(put_all(&w, err), done);
  status = sn_series_finish(out, recording, err);
done:
  sn_free(raw);
  sn_free(w.names);
  sn_free(w.plans);
  return status;
}

void sn_montage_write_json(const sn_montage_options *options, sn_json_writer *writer) {
  static const char *const KINDS[] = {"as-is", "average", "named", "bipolar"};
  static const char *const POLICIES[] = {"refuse", "without", "drop"};
  const sn_reference_options *r = &options->reference;
  sn_json_put_string(writer, "reference", KINDS[r->kind]);
  if (r->kind == SN_REFERENCE_NAMED) {
    sn_json_write_key(writer, "reference_channels");
    sn_json_begin_array(writer);
    for (int64_t i = 0; i < r->n_names; i++) sn_json_write_string(writer, r->names[i]);
    sn_json_end_array(writer);
  }
  if (r->kind == SN_REFERENCE_BIPOLAR) {
    sn_json_write_key(writer, "pairs");
    sn_json_begin_array(writer);
    for (int64_t i = 0; i < r->n_pairs; i++) {
      char pair[2 * SN_MONTAGE_NAME + 2];
      snprintf(pair, sizeof pair, "%s-%s", r->pairs[i][0], r->pairs[i][1]);
      sn_json_write_string(writer, pair);
    }
    sn_json_end_array(writer);
  }
  sn_json_put_string(writer, "missing_positions", POLICIES[options->place.policy]);
  sn_json_put_f64(writer, "head_radius_m", options->place.radius_m > 0.0 ? options->place.radius_m : SN_HEAD_RADIUS_M);
  sn_json_put_i64(writer, "biosemi_cap", options->place.biosemi_cap);
}
