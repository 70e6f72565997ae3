#include "encoders/position/position_fourier.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

typedef struct candidate {
  int32_t norm, index;
} candidate;

static int compare(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->norm != y->norm) return x->norm < y->norm ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static void digits(int64_t index, int64_t n, uint8_t k[4]) {
  for (int a = 3; a >= 0; a--) {
    k[a] = (uint8_t)(index % n);
    index /= n;
  }
}

sn_status sn_fourier_create(sn_fourier *out, const char *name, int64_t width, int64_t n, bool by_norm, sn_error *err) {
  candidate *all = NULL;
  sn_status status;
  *out = (sn_fourier){.n = n, .n_phases = width / 2};
  if (width % 2 != 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s: a width of %lld is odd, and the encoding is pairs of cosine and sine", name,
                   (long long)width);
  if (n == 0)
    for (out->n = 1; out->n * out->n * out->n * out->n < out->n_phases;) out->n++;
  n = out->n;
  if (n < 1 || n > SN_FOURIER_MOST || n * n * n * n < out->n_phases)
    return sn_fail(err, SN_E_ARGUMENT,
                   "model.position_frequencies %lld: %s of width %lld needs n^4 >= %lld phases, so from %.0f to %d", (long long)n,
                   name, (long long)width, (long long)out->n_phases, ceil(pow((double)out->n_phases, 0.25) - 1e-9),
                   SN_FOURIER_MOST);
  const int64_t total = n * n * n * n;
  SN_TRY_GOTO(sn_alloc(&all, total, sizeof *all, "position phases", err), done);
  SN_TRY_GOTO(sn_alloc(&out->k, out->n_phases, sizeof *out->k, "position phases", err), done);
  for (int64_t i = 0; i < total; i++) {
    uint8_t k[4];
    digits(i, n, k);
    all[i] = (candidate){.norm = by_norm ? k[0] * k[0] + k[1] * k[1] + k[2] * k[2] + k[3] * k[3] : 0, .index = (int32_t)i};
  }
  qsort(all, (size_t)total, sizeof *all, compare);
  for (int64_t p = 0; p < out->n_phases; p++) digits(all[p].index, n, out->k[p]);
done:
  sn_free(all);
  return status;
}

void sn_fourier_free(sn_fourier *fourier) {
  sn_free(fourier->k);
  fourier->k = NULL;
}

void sn_fourier_row(const sn_fourier *fourier, const double angles[4], double *row) {
  double c[4][SN_FOURIER_MOST], s[4][SN_FOURIER_MOST];
  for (int a = 0; a < 4; a++)
    for (int64_t k = 0; k < fourier->n; k++) {
      c[a][k] = cos((double)k * angles[a]);
      s[a][k] = sin((double)k * angles[a]);
    }
  for (int64_t p = 0; p < fourier->n_phases; p++) {
    const uint8_t *k = fourier->k[p];
    double re = c[0][k[0]], im = s[0][k[0]];
    for (int a = 1; a < 4; a++) {
      const double r = re * c[a][k[a]] - im * s[a][k[a]];
      im = re * s[a][k[a]] + im * c[a][k[a]];
      re = r;
    }
    row[p] = re;
    row[fourier->n_phases + p] = im;
  }
}
