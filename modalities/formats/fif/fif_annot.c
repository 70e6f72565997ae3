/* FIF: annotations that are stored in the file. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "modalities/formats/fif/fif_parts.h"
#include "modalities/formats/triggers/triggers.h"

typedef struct stored_list {
  int64_t n_onsets, n_ends;
  double *onsets, *ends;     /* seconds, from the origin below */
  char *texts, *channels;    /* names with ':' between; JSON: a list of names for each annotation */
  bool has_origin;
  double origin_s;           /* since 1970 */
} stored_list;

static sn_status read_numbers(const fif_tree *tree, const fif_tag *tag, double **out, int64_t *n, sn_error *err) {
  int64_t size = tag->type == FIFFT_DOUBLE ? 8 : 4;
  if (*out != NULL || (tag->type != FIFFT_FLOAT && tag->type != FIFFT_DOUBLE))
    return sn_fail_at(err, SN_E_CORRUPT, tag->offset, -1, NULL, "'%s': annotation times of type %d at byte %lld, or twice",
                      sn_stream_name(tree->stream), tag->type, (long long)tag->offset);
  *n = tag->size / size;
  SN_TRY(sn_alloc(out, *n, sizeof **out, "annotations", err));
  const sn_rows rows = {tree->stream, tag->offset, 1, size == 8 ? SN_STORED_F64_BE : SN_STORED_F32_BE};
  const int64_t column = 0;
  const double one = 1;
  double *to = *out;
  return sn_rows_read(&rows, 0, *n, &column, 1, &one, NULL, &to, 0, err);
}

static sn_status read_text_once(const fif_tree *tree, const fif_tag *tag, char **text, sn_error *err) {
  sn_free(*text);
  *text = NULL;
  return sn_fif_read_text(tree, tag, text, err);
}

static sn_status read_list(const fif_tree *tree, int64_t block, stored_list *list, sn_error *err) {
  for (const fif_tag *t = NULL; (t = sn_fif_find_tag(tree, block, 0, t)) != NULL;) {
    switch (t->kind) {
      case FIFF_MNE_BASELINE_MIN: SN_TRY(read_numbers(tree, t, &list->onsets, &list->n_onsets, err)); break;
      case FIFF_MNE_BASELINE_MAX: SN_TRY(read_numbers(tree, t, &list->ends, &list->n_ends, err)); break;
      case FIFF_COMMENT: SN_TRY(read_text_once(tree, t, &list->texts, err)); break;
      case FIFF_MNE_ANNOTATION_CHANNELS: SN_TRY(read_text_once(tree, t, &list->channels, err)); break;
      case FIFF_MEAS_DATE: {
        fif_tag second = *t; /* seconds, and microseconds behind them if there is room */
        int32_t half = t->type == FIFFT_DOUBLE ? 8 : 4;
        double microseconds = 0;
        second.offset += half;
        second.size -= half;
        SN_TRY(sn_fif_read_number(tree, t, &list->origin_s, err));
        if (second.size >= half) SN_TRY(sn_fif_read_number(tree, &second, &microseconds, err));
        list->origin_s += 1e-6 * microseconds;
        list->has_origin = isfinite(list->origin_s);
        break;
      }
      default: break;
    }
  }
  return SN_OK;
}

/* The channel of annotation i when it names exactly one that is there, else -1: all. */
static int32_t find_channel(const sn_recording *r, const sn_json *channels, int64_t i) {
  const sn_json *names = channels != NULL ? sn_json_at(channels, i) : NULL;
  if (names == NULL || sn_json_length(names) != 1) return -1;
  const char *name = sn_json_as_string(sn_json_at(names, 0));
  for (int64_t c = 0; name != NULL && c < r->n_channels; c++)
    if (strcmp(r->channels[c].raw_name, name) == 0) return (int32_t)c;
  return -1;
}

typedef struct placing {
  const fif_info *info;
  const sn_recording *r;
  double shift_s, duration_s;
  int64_t capacity;
} placing;

/* Cuts what reaches over the recording's ends, leaves out what lies outside. */
static sn_status place(placing *p, const char *text, double onset, double end, int32_t channel, sn_annotations *list,
                       sn_error *err) {
  onset += p->shift_s;
  end += p->shift_s;
  if (!isfinite(onset) || !(end >= onset) || end < 0 || onset >= p->duration_s)
    return sn_warning_add(&list->warnings, &list->n_warnings, "annotation_outside", text, err,
                          "annotation '%.60s' at %.3f s lies outside the recording of %.3f s and is left out", text, onset,
                          p->duration_s);
  if (onset < 0 || end > p->duration_s) {
    double near = 0.5 * (double)p->r->rate_den / (double)p->r->rate_num; /* times are often rounded to float32 */
    if (onset < -near || end > p->duration_s + near)
      SN_TRY(sn_warning_add(&list->warnings, &list->n_warnings, "annotation_cut", text, err,
                            "annotation '%.60s', %.3f s to %.3f s, is cut to the recording", text, onset, end));
    onset = onset < 0 ? 0 : onset;
    end = end > p->duration_s ? p->duration_s : end;
  }
  const double rate = (double)p->r->rate_num / (double)p->r->rate_den;
  sn_annotation a = {.sample = llround(onset * rate), .onset_s = onset, .duration_s = end - onset, .channel = channel};
  if ((double)a.sample >= p->duration_s * rate - 0.5) a.sample = llround(p->duration_s * rate) - 1; /* rounded over the end */
  return sn_annotations_add(list, &p->capacity, &a, text, err);
}

/* Onsets are counted from the origin that the annotations state, else from the first sample; without a date of the
 * measurement from sample number 0, which the recording need not hold. */
static double shift_of(const fif_info *info, const stored_list *stored, double first_s) {
  if (!info->has_date) return -first_s;
  if (!stored->has_origin) return 0;
  return stored->origin_s - ((double)info->date_s + 1e-6 * (double)info->date_us) - first_s;
}

static sn_status place_all(const fif_tree *tree, stored_list *stored, placing *p, sn_annotations *list, sn_error *err) {
  sn_json *channels = NULL;
  char *rest = stored->texts;
  sn_status status = SN_OK;
  if (stored->n_onsets != stored->n_ends)
    return sn_fail(err, SN_E_CORRUPT, "'%s': %lld onsets and %lld ends of annotations", sn_stream_name(tree->stream),
                   (long long)stored->n_onsets, (long long)stored->n_ends);
  if (stored->channels != NULL && stored->channels[0] != '\0')
    SN_TRY(sn_json_parse(stored->channels, (int64_t)strlen(stored->channels), "annotation channels", &channels, err));
  for (int64_t i = 0; i < stored->n_onsets && status == SN_OK; i++) {
    const char *text = sn_fif_next_name(&rest);
    if (text == NULL)
      status = sn_fail(err, SN_E_CORRUPT, "'%s': %lld annotations, only %lld texts", sn_stream_name(tree->stream),
                       (long long)stored->n_onsets, (long long)i);
    else
      status = place(p, text, stored->onsets[i], stored->ends[i], find_channel(p->r, channels, i), list, err);
  }
  sn_json_destroy(channels);
  return status;
}

bool sn_fif_has_annotations(const fif_tree *tree) { return sn_fif_find_block(tree, 0, FIFFB_MNE_ANNOTATIONS, -1) >= 0; }

sn_status sn_fif_annotations_read(const fif_tree *tree, const fif_info *info, const sn_recording *r, int64_t first_sample,
                                  double duration_s, sn_annotations *list, sn_error *err) {
  stored_list stored = {0};
  int64_t block = sn_fif_find_block(tree, 0, FIFFB_MNE_ANNOTATIONS, -1);
  if (block < 0) return SN_OK;
  sn_status status = read_list(tree, block, &stored, err);
  placing p = {info, r, shift_of(info, &stored, (double)first_sample * (double)r->rate_den / (double)r->rate_num), duration_s,
               list->n};
  if (status == SN_OK) status = place_all(tree, &stored, &p, list, err);
  sn_free(stored.onsets);
  sn_free(stored.ends);
  sn_free(stored.texts);
  sn_free(stored.channels);
  return status;
}
