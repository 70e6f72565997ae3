/* Small EDF and BrainVision recordings for tests of trees. */
#ifndef SN_TESTS_BIDS_COHORT_H
#define SN_TESTS_BIDS_COHORT_H

#include <math.h>

#include "cohort.h"
#include "core/fs.h"
#include "modalities/formats/brainvision/brainvision.h"
#include "modalities/formats/edf/edf.h"

enum { RATE = 100, SECONDS = 12, N = RATE * SECONDS };

/* Two EEG channels and one that is blank in its unit: values 10 sin, 20 sin, 30 sin. */
static inline void bids_write_edf(const char *root, const char *path, const char *subject, const char *unit) {
  double values[3][N];
  char full[4096];
  cohort_path(root, path, full, sizeof full);
  char folder[4096];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(full, '/') - full), full);
  CHECK(sn_make_directories(folder, fault));
  for (int c = 0; c < 3; c++)
    for (int i = 0; i < N; i++) values[c][i] = 10.0 * (c + 1) * sin(0.3 * i + subject[0]);
  const sn_edf_write_signal signals[3] = {{.label = "EEG Cz", .unit = "uV", .samples_per_record = RATE, .values = values[0]},
                                          {.label = "EEG T3", .unit = "uV", .samples_per_record = RATE, .values = values[1]},
                                          {.label = "Aux", .unit = unit, .samples_per_record = RATE, .values = values[2]}};
  const sn_edf_write_file file = {.subject_id = subject, .age_years = NAN, .duration_num = 1, .duration_den = 1,
                                  .n_records = SECONDS, .n_signals = 3, .signals = signals};
  CHECK(sn_edf_write(full, &file, fault));
}

static inline void bids_write_brainvision(const char *root, const char *folder, const char *stem) {
  double values[2][N];
  char full[4096];
  cohort_path(root, folder, full, sizeof full);
  CHECK(sn_make_directories(full, fault));
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < N; i++) values[c][i] = 5.0 * (c + 1) * sin(0.2 * i);
  const double *const rows[2] = {values[0], values[1]};
  const sn_brainvision_channel channels[2] = {{.name = "Fp1", .resolution = 0.01}, {.name = "Oz", .resolution = 0.01}};
  const sn_brainvision_file file = {.stem = stem, .type = SN_BRAINVISION_INT16, .rate_num = RATE, .rate_den = 1, .n_channels = 2,
                                    .n_frames = N, .channels = channels, .values = rows};
  int64_t clipped = 0;
  CHECK(sn_brainvision_write(full, &file, &clipped, fault));
}

#endif
