/* sensor6d: where a sensor is, where it points and of what kind it is (signals_and_probes S7).
 *
 *   e = MLP(p', d) + type;  MLP 6 -> 128 -> 256 -> C with GELU between (biases)
 *
 * p' = (p - mean p) / sqrt(3 mean |p - mean p|^2), mean over all sensors of the same modality in the sample, hidden ones
 * included, so that pretraining and evaluation scale alike; a modality of one sensor has p' = 0.  d: 0 for electrodes, the
 * coil's normal (ez) for magnetometers and axial gradiometers, ex for planar ones, as the tokens carry it.  type: a learned
 * row for EEG (electrodes: EEG, EOG, ECoG, synthetic), MAG or GRAD, by the token's sensor kind, which the reader took from
 * the coil type's code; any other kind is SN_E_ARGUMENT.  Jitter moves p, never the means.
 * It tells nothing of time: sincos or rope does.
 * Source: Xiao et al., "BrainOmni: a brain foundation model for unified EEG and MEG signals", 2025. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/position.h"
#include "kernels/linear/linear.h"
#include "kernels/add/add.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/gelu/gelu.h"

enum { TYPE_EEG, TYPE_MAG, TYPE_GRAD, N_TYPES, HIDDEN_1 = 128, HIDDEN_2 = 256 };

typedef struct sensor6d {
  sn_param *weight[3], *bias[3], *type;
} sensor6d;

typedef struct sensor6d_work {
  sn_position_data *inputs; /* (n_rows, 6) */
  int32_t *types;           /* (n_rows) -2 none */
} sensor6d_work;

/* Mean and 1 / sqrt(3 mean |p - mean|^2) of each modality of one sample. */
typedef struct frame {
  double mean[N_TYPES][3], scale[N_TYPES];
} frame;

static sn_status create(const sn_position_setup *setup, void **self, sn_error *err) {
  static const char *const NAMES[3][2] = {{"sensor6d.fc1.weight", "sensor6d.fc1.bias"},
                                          {"sensor6d.fc2.weight", "sensor6d.fc2.bias"},
                                          {"sensor6d.fc3.weight", "sensor6d.fc3.bias"}};
  const int64_t widths[4] = {6, HIDDEN_1, HIDDEN_2, setup->width};
  sensor6d *s = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&s, 1, sizeof *s, "sensor6d", err));
  for (int i = 0; i < 3; i++) {
    SN_TRY_GOTO(sn_position_param(setup, NAMES[i][0], SN_ROLE_WEIGHT, widths[i + 1], widths[i], SN_INIT_XAVIER_UNIFORM, 1,
                                  &s->weight[i], err), fail);
    SN_TRY_GOTO(sn_position_param(setup, NAMES[i][1], SN_ROLE_BIAS, widths[i + 1], 0, SN_INIT_ZEROS, 1, &s->bias[i], err),
                fail);
  }
  SN_TRY_GOTO(sn_position_param(setup, "sensor6d.type.weight", SN_ROLE_TOKEN, N_TYPES, setup->width, SN_INIT_TRUNC_NORMAL,
                                0.02, &s->type, err), fail);
  *self = s;
  return SN_OK;
fail:
  sn_free(s);
  return status;
}

static int type_of(uint8_t sensor) {
  switch (sensor) {
    case SN_SENSOR_EEG: case SN_SENSOR_EOG: case SN_SENSOR_ECOG: case SN_SENSOR_SYNTHETIC: return TYPE_EEG;
    case SN_SENSOR_MEG_MAG: return TYPE_MAG;
    case SN_SENSOR_MEG_GRAD: return TYPE_GRAD;
    default: return -1;
  }
}

static bool has_place(const float *p) { return p[0] != 0 || p[1] != 0 || p[2] != 0; }

/* Over the sensors (distinct series) of sample s that have a place. seen (n_series): scratch. */
static void measure(const sn_token_batch *batch, int64_t s, uint8_t *seen, int64_t n_series, frame *out) {
  int64_t n[N_TYPES] = {0};
  double squares[N_TYPES] = {0};
  memset(out, 0, sizeof *out);
  for (int pass = 0; pass < 2; pass++) {
    memset(seen, 0, (size_t)n_series);
    for (int64_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++) {
      const float *p = batch->coordinates + 4 * t;
      const int type = type_of(batch->sensors[t]);
      if (type < 0 || seen[batch->series[t]]++ || !has_place(p)) continue;
      if (pass == 0) n[type]++;
      for (int a = 0; a < 3; a++) {
        const double d = p[a] - out->mean[type][a];
        if (pass == 0) out->mean[type][a] += p[a];
        else squares[type] += d * d;
      }
    }
    for (int m = 0; m < N_TYPES && pass == 0; m++)
      for (int a = 0; a < 3 && n[m] > 0; a++) out->mean[m][a] /= (double)n[m];
  }
  for (int m = 0; m < N_TYPES; m++)
    out->scale[m] = n[m] > 0 && squares[m] > 0 ? 1 / sqrt(3 * squares[m] / (double)n[m]) : 0;
}

static void free_work(void *work) {
  sensor6d_work *w = work;
  if (w == NULL) return;
  sn_position_data_destroy(w->inputs);
  sn_free(w->types);
  sn_free(w);
}

static sn_status fill(sensor6d_work *w, const sn_position_rows *rows, const frame *frames, sn_error *err) {
  const sn_token_batch *batch = rows->batch;
  for (int64_t r = 0; r < rows->n_rows; r++) {
    const int64_t t = rows->tokens[r];
    w->types[r] = -2;
    if (t < 0) continue;
    const int type = type_of(batch->sensors[t]);
    if (type < 0)
      return sn_fail(err, SN_E_ARGUMENT,
                     "sensor6d: channel number %d of a sample is of sensor kind %d; it knows electrodes, magnetometers and "
                     "gradiometers: leave such channels out, or use another encoding", (int)batch->series[t],
                     (int)batch->sensors[t]);
    const frame *f = &frames[rows->samples[r]];
    double six[6] = {0};
    for (int a = 0; a < 3; a++) {
      if (has_place(batch->coordinates + 4 * t))
        six[a] = ((double)rows->places[3 * r + a] - f->mean[type][a]) * f->scale[type];
      if (type != TYPE_EEG) six[3 + a] = batch->orientations[3 * t + a];
    }
    sn_position_data_set(w->inputs, r, six);
    w->types[r] = type;
  }
  return SN_OK;
}

static sn_status prepare(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err) {
  const sn_token_batch *batch = rows->batch;
  sensor6d_work *w = NULL;
  uint8_t *seen = NULL;
  frame *frames = NULL;
  int64_t n_series = 0;
  sn_status status;
  for (int64_t t = 0; t < batch->n_tokens; t++)
    if (batch->series[t] >= n_series) n_series = batch->series[t] + 1;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "sensor6d work", err));
  SN_TRY_GOTO(sn_position_data_create(rows->n_rows, 6, residual, &w->inputs, err), done);
  SN_TRY_GOTO(sn_alloc(&w->types, rows->n_rows, sizeof *w->types, "sensor6d work", err), done);
  SN_TRY_GOTO(sn_alloc(&seen, n_series, 1, "sensor6d work", err), done);
  SN_TRY_GOTO(sn_alloc(&frames, batch->n_samples, sizeof *frames, "sensor6d work", err), done);
  for (int64_t s = 0; s < batch->n_samples; s++) measure(batch, s, seen, n_series, &frames[s]);
  SN_TRY_GOTO(fill(w, rows, frames, err), done);
  *work = w;
  w = NULL;
done:
  free_work(w);
  sn_free(seen);
  sn_free(frames);
  return status;
}

static sn_status encode(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                        sn_error *err) {
  const sensor6d *s = self;
  const sensor6d_work *w = work;
  sn_value *x, *table, *rows;
  SN_TRY(sn_position_data_value(tape, &x, w->inputs, n_rows, err));
  for (int i = 0; i < 3; i++) {
    SN_TRY(sn_linear_of(tape, &x, x, s->weight[i], s->bias[i], sn_tape_residual(tape), err));
    if (i < 2) SN_TRY(sn_gelu(tape, &x, x, SN_GELU_ERF, err));
  }
  SN_TRY(sn_tape_param(tape, &table, s->type, err));
  SN_TRY(sn_gather_rows(tape, &rows, table, NULL, w->types, n_rows, err));
  return sn_add(tape, encoding, x, rows, err);
}

const sn_position_kind sn_position_sensor6d = {.name = "sensor6d",
                                               .summary = "MLP of a sensor's place and direction, and its type",
                                               .needs_place = true,
                                               .create = create,
                                               .destroy = sn_free,
                                               .prepare = prepare,
                                               .free_work = free_work,
                                               .encode = encode,
                                               .fills_empty = true};
