/* ECG leads, by name and never by position.
 *
 * Each lead has a number (stored in batches and checkpoints: append only, never renumber), aliases, and a direction:
 * the unit vector from the negative to the positive pole as the heart's dipole sees it.
 *
 * FRAME.  The body frame is that of volumes, RAS: x to the patient's right, y anterior, z superior.  (Frank's X left, Y
 * feet, Z back become -x, -z, -y.)
 * DIRECTIONS.  I, II, V1-V6: the rows of Dower's matrix from Frank's X, Y, Z to the twelve leads (Dower, Machado,
 * Osborne, Clin. Cardiol. 3 (1980) 87), III, aVR, aVL, aVF: from I and II by Einthoven's and Goldberger's relations;
 * all scaled to unit length.  Modified leads (MLI, MLII, MLIII, MCL1-MCL6, CM5, CM2, CC5) take the direction of the
 * lead that they stand for. vx, vy, vz: the axes.  Leads whose place is not stated (V, ECG, ECG1...) have the direction
 * 0. */
#ifndef SN_MODALITIES_ECG_LEADS_H
#define SN_MODALITIES_ECG_LEADS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

/* Numbers of the leads that code asks for by name. */
enum {
  SN_LEAD_I = 0, SN_LEAD_II, SN_LEAD_III, SN_LEAD_AVR, SN_LEAD_AVL, SN_LEAD_AVF, SN_LEAD_V1, SN_LEAD_V2, SN_LEAD_V3,
  SN_LEAD_V4, SN_LEAD_V5, SN_LEAD_V6, SN_LEAD_MLI, SN_LEAD_MLII, SN_LEAD_MLIII, SN_LEAD_ECG, SN_LEAD_V
};

int64_t sn_lead_count(void);            /* lead numbers are [0, count) */
const char *sn_lead_name(int64_t lead); /* canonical: "aVR" */
/* Unit vector, or zeros. */
void sn_lead_direction(int64_t lead, double direction[3]);
/* Dower's row (Frank X left, Y feet, Z back), not scaled: mV in the lead per mV of the vectorcardiogram; false where
 * the lead has no known vector. */
bool sn_lead_vector(int64_t lead, double frank[3]);
/* Number of a name or alias; blanks, case and a leading "ECG " or "lead " do not matter. -1: not a lead. */
int64_t sn_lead_find(const char *name);

/* A lead of a recording: a channel, or (channel -1) derived from the channels of I and II:
 * III = II - I, aVR = -(I + II)/2, aVL = I - II/2, aVF = II - I/2. */
typedef struct sn_lead_source {
  int32_t lead;
  int64_t channel;
  int64_t channel_i, channel_ii; /* derived leads only */
  double weight_i, weight_ii;
} sn_lead_source;

enum { SN_LEADS_MOST = 64 };

/* Which leads of the recording are taken, in the order of `wanted` (n_wanted > 0) or, with n_wanted 0, of their
 * numbers.  So files that store the same leads in another order give the same list.  Absent leads are not in the list
 * (absent means masked).
 *   SN_E_ARGUMENT  a lead occurs twice; an ECG channel has a name that is no lead (n_wanted 0 only: names the nearest);
 *   none
 *                  of the leads is there
 * derive: leads that are wanted (n_wanted 0: the four) and absent are derived where I and II are recorded at the same
 * rate. */
SN_MUST_CHECK sn_status sn_leads_select(const sn_recording *recording, const int32_t *wanted, int64_t n_wanted,
                                        bool derive, sn_lead_source sources[SN_LEADS_MOST], int64_t *n, sn_error *err);
/* Recorded against derived: over the first 10 s of each segment that has them, rms of (recorded - derived), means
 * removed, in mV.  More than SN_LEAD_MISMATCH_MV means that the leads are not in the order that their names say. */
#define SN_LEAD_MISMATCH_MV 0.05
typedef struct sn_lead_check {
  int64_t n_checked;          /* leads compared, 0..4 */
  double rms_mv[4];           /* III, aVR, aVL, aVF; NaN: not there */
  bool mismatch;
} sn_lead_check;
SN_MUST_CHECK sn_status sn_leads_check(const sn_recording *recording, sn_lead_check *out, sn_error *err);
/* The same, and each mismatch becomes a warning "lead_mismatch" of the recording. */
SN_MUST_CHECK sn_status sn_leads_check_warn(sn_recording *recording, sn_lead_check *out, sn_error *err);

#endif
