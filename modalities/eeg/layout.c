#include "modalities/eeg/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "modalities/eeg/channel_names.h"

#define PI 3.14159265358979323846

/* Place of an electrode: row in per cent of the way from nasion to inion, and how far from the midline: eighths of the
 * way to the contour of 10 % (8), the contours of 5 % (9) and 0 % (10), and 5 % below that (11); left is negative.  On
 * a contour the row is the per cent of the way round. */
typedef struct electrode_row {
  const char *name;
  int8_t row, eighths, system;
} electrode_row;

#define S20 SN_SYSTEM_1020
#define S10 SN_SYSTEM_1010
#define S05 SN_SYSTEM_1005
#define EAR SN_SYSTEM_EAR

/* The index is the electrode's number, which is stored in batches and checkpoints: only append. */
/* clang-format off */
static const electrode_row ELECTRODES[] = {
    {"Fp1", 10, -8, S20}, {"Fpz", 10, 0, S20}, {"Fp2", 10, 8, S20}, {"F7", 30, -8, S20}, {"F3", 30, -4, S20},
    {"Fz", 30, 0, S20}, {"F4", 30, 4, S20}, {"F8", 30, 8, S20}, {"T7", 50, -8, S20}, {"C3", 50, -4, S20},
    {"Cz", 50, 0, S20}, {"C4", 50, 4, S20}, {"T8", 50, 8, S20}, {"P7", 70, -8, S20}, {"P3", 70, -4, S20},
    {"Pz", 70, 0, S20}, {"P4", 70, 4, S20}, {"P8", 70, 8, S20}, {"O1", 90, -8, S20}, {"Oz", 90, 0, S20},
    {"O2", 90, 8, S20},
    {"A1", 50, -11, EAR}, {"A2", 50, 11, EAR}, {"M1", 60, -11, EAR}, {"M2", 60, 11, EAR},
    {"Nz", 0, 0, S10}, {"AFz", 20, 0, S10}, {"AF9", 20, -10, S10}, {"AF7", 20, -8, S10}, {"AF5", 20, -6, S10},
    {"AF3", 20, -4, S10}, {"AF1", 20, -2, S10}, {"AF10", 20, 10, S10}, {"AF8", 20, 8, S10}, {"AF6", 20, 6, S10},
    {"AF4", 20, 4, S10}, {"AF2", 20, 2, S10}, {"F9", 30, -10, S10}, {"F5", 30, -6, S10}, {"F1", 30, -2, S10},
    {"F10", 30, 10, S10}, {"F6", 30, 6, S10}, {"F2", 30, 2, S10}, {"FCz", 40, 0, S10}, {"FT9", 40, -10, S10},
    {"FT7", 40, -8, S10}, {"FC5", 40, -6, S10}, {"FC3", 40, -4, S10}, {"FC1", 40, -2, S10}, {"FT10", 40, 10, S10},
    {"FT8", 40, 8, S10}, {"FC6", 40, 6, S10}, {"FC4", 40, 4, S10}, {"FC2", 40, 2, S10}, {"T9", 50, -10, S10},
    {"C5", 50, -6, S10}, {"C1", 50, -2, S10}, {"T10", 50, 10, S10}, {"C6", 50, 6, S10}, {"C2", 50, 2, S10},
    {"CPz", 60, 0, S10}, {"TP9", 60, -10, S10}, {"TP7", 60, -8, S10}, {"CP5", 60, -6, S10}, {"CP3", 60, -4, S10},
    {"CP1", 60, -2, S10}, {"TP10", 60, 10, S10}, {"TP8", 60, 8, S10}, {"CP6", 60, 6, S10}, {"CP4", 60, 4, S10},
    {"CP2", 60, 2, S10}, {"P9", 70, -10, S10}, {"P5", 70, -6, S10}, {"P1", 70, -2, S10}, {"P10", 70, 10, S10},
    {"P6", 70, 6, S10}, {"P2", 70, 2, S10}, {"POz", 80, 0, S10}, {"PO9", 80, -10, S10}, {"PO7", 80, -8, S10},
    {"PO5", 80, -6, S10}, {"PO3", 80, -4, S10}, {"PO1", 80, -2, S10}, {"PO10", 80, 10, S10}, {"PO8", 80, 8, S10},
    {"PO6", 80, 6, S10}, {"PO4", 80, 4, S10}, {"PO2", 80, 2, S10}, {"Iz", 100, 0, S10}, {"I1", 90, -10, S10},
    {"I2", 90, 10, S10},
    {"N1", 10, -10, S05}, {"N1h", 5, -10, S05}, {"N2", 10, 10, S05}, {"N2h", 5, 10, S05}, {"NFpz", 5, 0, S05},
    {"NFp1", 10, -9, S05}, {"NFp1h", 5, -9, S05}, {"NFp2", 10, 9, S05}, {"NFp2h", 5, 9, S05}, {"Fp1h", 5, -8, S05},
    {"Fp2h", 5, 8, S05}, {"AFpz", 15, 0, S05}, {"AFp9", 15, -10, S05}, {"AFp9h", 15, -9, S05}, {"AFp7", 15, -8, S05},
    {"AFp7h", 15, -7, S05}, {"AFp5", 15, -6, S05}, {"AFp5h", 15, -5, S05}, {"AFp3", 15, -4, S05},
    {"AFp3h", 15, -3, S05}, {"AFp1", 15, -2, S05}, {"AFp1h", 15, -1, S05}, {"AFp10", 15, 10, S05},
    {"AFp10h", 15, 9, S05}, {"AFp8", 15, 8, S05}, {"AFp8h", 15, 7, S05}, {"AFp6", 15, 6, S05}, {"AFp6h", 15, 5, S05},
    {"AFp4", 15, 4, S05}, {"AFp4h", 15, 3, S05}, {"AFp2", 15, 2, S05}, {"AFp2h", 15, 1, S05}, {"AF9h", 20, -9, S05},
    {"AF7h", 20, -7, S05}, {"AF5h", 20, -5, S05}, {"AF3h", 20, -3, S05}, {"AF1h", 20, -1, S05}, {"AF10h", 20, 9, S05},
    {"AF8h", 20, 7, S05}, {"AF6h", 20, 5, S05}, {"AF4h", 20, 3, S05}, {"AF2h", 20, 1, S05}, {"AFFz", 25, 0, S05},
    {"AFF9", 25, -10, S05}, {"AFF9h", 25, -9, S05}, {"AFF7", 25, -8, S05}, {"AFF7h", 25, -7, S05},
    {"AFF5", 25, -6, S05}, {"AFF5h", 25, -5, S05}, {"AFF3", 25, -4, S05}, {"AFF3h", 25, -3, S05},
    {"AFF1", 25, -2, S05}, {"AFF1h", 25, -1, S05}, {"AFF10", 25, 10, S05}, {"AFF10h", 25, 9, S05},
    {"AFF8", 25, 8, S05}, {"AFF8h", 25, 7, S05}, {"AFF6", 25, 6, S05}, {"AFF6h", 25, 5, S05}, {"AFF4", 25, 4, S05},
    {"AFF4h", 25, 3, S05}, {"AFF2", 25, 2, S05}, {"AFF2h", 25, 1, S05}, {"F9h", 30, -9, S05}, {"F7h", 30, -7, S05},
    {"F5h", 30, -5, S05}, {"F3h", 30, -3, S05}, {"F1h", 30, -1, S05}, {"F10h", 30, 9, S05}, {"F8h", 30, 7, S05},
    {"F6h", 30, 5, S05}, {"F4h", 30, 3, S05}, {"F2h", 30, 1, S05}, {"FFCz", 35, 0, S05}, {"FFT9", 35, -10, S05},
    {"FFT9h", 35, -9, S05}, {"FFT7", 35, -8, S05}, {"FFT7h", 35, -7, S05}, {"FFC5", 35, -6, S05},
    {"FFC5h", 35, -5, S05}, {"FFC3", 35, -4, S05}, {"FFC3h", 35, -3, S05}, {"FFC1", 35, -2, S05},
    {"FFC1h", 35, -1, S05}, {"FFT10", 35, 10, S05}, {"FFT10h", 35, 9, S05}, {"FFT8", 35, 8, S05},
    {"FFT8h", 35, 7, S05}, {"FFC6", 35, 6, S05}, {"FFC6h", 35, 5, S05}, {"FFC4", 35, 4, S05}, {"FFC4h", 35, 3, S05},
    {"FFC2", 35, 2, S05}, {"FFC2h", 35, 1, S05}, {"FT9h", 40, -9, S05}, {"FT7h", 40, -7, S05}, {"FC5h", 40, -5, S05},
    {"FC3h", 40, -3, S05}, {"FC1h", 40, -1, S05}, {"FT10h", 40, 9, S05}, {"FT8h", 40, 7, S05}, {"FC6h", 40, 5, S05},
    {"FC4h", 40, 3, S05}, {"FC2h", 40, 1, S05}, {"FCCz", 45, 0, S05}, {"FTT9", 45, -10, S05}, {"FTT9h", 45, -9, S05},
    {"FTT7", 45, -8, S05}, {"FTT7h", 45, -7, S05}, {"FCC5", 45, -6, S05}, {"FCC5h", 45, -5, S05},
    {"FCC3", 45, -4, S05}, {"FCC3h", 45, -3, S05}, {"FCC1", 45, -2, S05}, {"FCC1h", 45, -1, S05},
    {"FTT10", 45, 10, S05}, {"FTT10h", 45, 9, S05}, {"FTT8", 45, 8, S05}, {"FTT8h", 45, 7, S05}, {"FCC6", 45, 6, S05},
    {"FCC6h", 45, 5, S05}, {"FCC4", 45, 4, S05}, {"FCC4h", 45, 3, S05}, {"FCC2", 45, 2, S05}, {"FCC2h", 45, 1, S05},
    {"T9h", 50, -9, S05}, {"T7h", 50, -7, S05}, {"C5h", 50, -5, S05}, {"C3h", 50, -3, S05}, {"C1h", 50, -1, S05},
    {"T10h", 50, 9, S05}, {"T8h", 50, 7, S05}, {"C6h", 50, 5, S05}, {"C4h", 50, 3, S05}, {"C2h", 50, 1, S05},
    {"CCPz", 55, 0, S05}, {"TTP9", 55, -10, S05}, {"TTP9h", 55, -9, S05}, {"TTP7", 55, -8, S05},
    {"TTP7h", 55, -7, S05}, {"CCP5", 55, -6, S05}, {"CCP5h", 55, -5, S05}, {"CCP3", 55, -4, S05},
    {"CCP3h", 55, -3, S05}, {"CCP1", 55, -2, S05}, {"CCP1h", 55, -1, S05}, {"TTP10", 55, 10, S05},
    {"TTP10h", 55, 9, S05}, {"TTP8", 55, 8, S05}, {"TTP8h", 55, 7, S05}, {"CCP6", 55, 6, S05}, {"CCP6h", 55, 5, S05},
    {"CCP4", 55, 4, S05}, {"CCP4h", 55, 3, S05}, {"CCP2", 55, 2, S05}, {"CCP2h", 55, 1, S05}, {"TP9h", 60, -9, S05},
    {"TP7h", 60, -7, S05}, {"CP5h", 60, -5, S05}, {"CP3h", 60, -3, S05}, {"CP1h", 60, -1, S05}, {"TP10h", 60, 9, S05},
    {"TP8h", 60, 7, S05}, {"CP6h", 60, 5, S05}, {"CP4h", 60, 3, S05}, {"CP2h", 60, 1, S05}, {"CPPz", 65, 0, S05},
    {"TPP9", 65, -10, S05}, {"TPP9h", 65, -9, S05}, {"TPP7", 65, -8, S05}, {"TPP7h", 65, -7, S05},
    {"CPP5", 65, -6, S05}, {"CPP5h", 65, -5, S05}, {"CPP3", 65, -4, S05}, {"CPP3h", 65, -3, S05},
    {"CPP1", 65, -2, S05}, {"CPP1h", 65, -1, S05}, {"TPP10", 65, 10, S05}, {"TPP10h", 65, 9, S05},
    {"TPP8", 65, 8, S05}, {"TPP8h", 65, 7, S05}, {"CPP6", 65, 6, S05}, {"CPP6h", 65, 5, S05}, {"CPP4", 65, 4, S05},
    {"CPP4h", 65, 3, S05}, {"CPP2", 65, 2, S05}, {"CPP2h", 65, 1, S05}, {"P9h", 70, -9, S05}, {"P7h", 70, -7, S05},
    {"P5h", 70, -5, S05}, {"P3h", 70, -3, S05}, {"P1h", 70, -1, S05}, {"P10h", 70, 9, S05}, {"P8h", 70, 7, S05},
    {"P6h", 70, 5, S05}, {"P4h", 70, 3, S05}, {"P2h", 70, 1, S05}, {"PPOz", 75, 0, S05}, {"PPO9", 75, -10, S05},
    {"PPO9h", 75, -9, S05}, {"PPO7", 75, -8, S05}, {"PPO7h", 75, -7, S05}, {"PPO5", 75, -6, S05},
    {"PPO5h", 75, -5, S05}, {"PPO3", 75, -4, S05}, {"PPO3h", 75, -3, S05}, {"PPO1", 75, -2, S05},
    {"PPO1h", 75, -1, S05}, {"PPO10", 75, 10, S05}, {"PPO10h", 75, 9, S05}, {"PPO8", 75, 8, S05},
    {"PPO8h", 75, 7, S05}, {"PPO6", 75, 6, S05}, {"PPO6h", 75, 5, S05}, {"PPO4", 75, 4, S05}, {"PPO4h", 75, 3, S05},
    {"PPO2", 75, 2, S05}, {"PPO2h", 75, 1, S05}, {"PO9h", 80, -9, S05}, {"PO7h", 80, -7, S05}, {"PO5h", 80, -5, S05},
    {"PO3h", 80, -3, S05}, {"PO1h", 80, -1, S05}, {"PO10h", 80, 9, S05}, {"PO8h", 80, 7, S05}, {"PO6h", 80, 5, S05},
    {"PO4h", 80, 3, S05}, {"PO2h", 80, 1, S05}, {"POOz", 85, 0, S05}, {"POO9", 85, -10, S05}, {"POO9h", 85, -9, S05},
    {"POO7", 85, -8, S05}, {"POO7h", 85, -7, S05}, {"POO5", 85, -6, S05}, {"POO5h", 85, -5, S05},
    {"POO3", 85, -4, S05}, {"POO3h", 85, -3, S05}, {"POO1", 85, -2, S05}, {"POO1h", 85, -1, S05},
    {"POO10", 85, 10, S05}, {"POO10h", 85, 9, S05}, {"POO8", 85, 8, S05}, {"POO8h", 85, 7, S05}, {"POO6", 85, 6, S05},
    {"POO6h", 85, 5, S05}, {"POO4", 85, 4, S05}, {"POO4h", 85, 3, S05}, {"POO2", 85, 2, S05}, {"POO2h", 85, 1, S05},
    {"O1h", 95, -8, S05}, {"O2h", 95, 8, S05}, {"OIz", 95, 0, S05}, {"OI1", 90, -9, S05}, {"OI1h", 95, -9, S05},
    {"OI2", 90, 9, S05}, {"OI2h", 95, 9, S05}, {"I1h", 95, -10, S05}, {"I2h", 95, 10, S05},
};
/* clang-format on */

#undef S20
#undef S10
#undef S05
#undef EAR

enum { N_ELECTRODES = sizeof ELECTRODES / sizeof *ELECTRODES };
_Static_assert((int)N_ELECTRODES <= (int)SN_NAME_PAIRS, "electrodes stay below the pairs");

static const struct { const char *old, *name; } OLD_NAMES[] = {{"T3", "T7"}, {"T4", "T8"}, {"T5", "P7"}, {"T6", "P8"}};

int64_t sn_electrode_count(void) { return N_ELECTRODES; }

const char *sn_electrode_name(int64_t electrode) {
  return electrode >= 0 && electrode < N_ELECTRODES ? ELECTRODES[electrode].name : "?";
}

sn_electrode_system sn_electrode_system_of(int64_t electrode) {
  return electrode >= 0 && electrode < N_ELECTRODES ? (sn_electrode_system)ELECTRODES[electrode].system
                                                    : SN_SYSTEM_1005;
}

int64_t sn_electrode_find(const char *name) {
  for (size_t i = 0; i < sizeof OLD_NAMES / sizeof *OLD_NAMES; i++)
    if (strcasecmp(name, OLD_NAMES[i].old) == 0) name = OLD_NAMES[i].name;
  for (int64_t i = 0; i < N_ELECTRODES; i++)
    if (strcasecmp(name, ELECTRODES[i].name) == 0) return i;
  return -1;
}

int64_t sn_electrode_stand_in(int64_t electrode) {
  if (electrode < 0 || electrode >= N_ELECTRODES || ELECTRODES[electrode].system != SN_SYSTEM_EAR) return -1;
  char other[3] = {ELECTRODES[electrode].name[0] == 'A' ? 'M' : 'A', ELECTRODES[electrode].name[1], '\0'};
  return sn_electrode_find(other);
}

/* --- positions --- */

static double vertex_to_nasion(void) { return SN_HEAD_ANGLE_DEG * PI / 180.0; }

static void on_midline(double direction[3], double row) {
  double polar = vertex_to_nasion() * (1.0 - row / 50.0); /* behind the vertex it is negative */
  direction[0] = 0.0, direction[1] = sin(polar), direction[2] = cos(polar);
}

/* height in per cent; side -1 left, 1 right. */
static void on_contour(double direction[3], double row, double height, double side) {
  double polar = vertex_to_nasion() * (1.0 - height / 50.0), azimuth = row * PI / 100.0;
  direction[0] = side * sin(polar) * sin(azimuth), direction[1] = sin(polar) * cos(azimuth), direction[2] = cos(polar);
}

/* The circle through the two contour points of the row and its midline point.  By symmetry its centre c lies in x = 0,
 * its first axis points from there to the midline point, its second is x:
 *   point(t) = c + r (cos(t) (m - c)/r + sin(t) x),   t = k/8 of the contour point's angle */
static void on_row(double direction[3], double row, double eighths) {
  double m[3], p[3], side = eighths < 0.0 ? -1.0 : 1.0;
  on_midline(m, row);
  on_contour(p, row, 10.0, side);
  /* In the plane x = 0: the foot of p, the direction u from the midline point to it; the centre is the foot of the
   * origin on that line. */
  double u[2] = {p[1] - m[1], p[2] - m[2]}, length = hypot(u[0], u[1]);
  u[0] /= length, u[1] /= length;
  double along = -(m[1] * u[0] + m[2] * u[1]);      /* from m to the centre */
  double radius = along;                            /* m lies on the circle, the centre on the line through it */
  double angle = atan2(fabs(p[0]), along - length); /* of p, from the axis centre -> m */
  double t = angle * fabs(eighths) / 8.0;
  double y = along - radius * cos(t); /* distance from m along u */
  direction[0] = side * radius * sin(t), direction[1] = m[1] + u[0] * y, direction[2] = m[2] + u[1] * y;
}

static void direction_of(double direction[3], const electrode_row *e) {
  int from_midline = e->eighths < 0 ? -e->eighths : e->eighths;
  double side = e->eighths < 0 ? -1.0 : 1.0;
  if (from_midline == 0)
    on_midline(direction, e->row);
  else if (from_midline >= 8)
    on_contour(direction, e->row, 5.0 * (10 - from_midline), side);
  else
    on_row(direction, e->row, e->eighths);
}

void sn_head_centre(double radius_m, double centre[3]) {
  centre[0] = centre[1] = 0.0;
  centre[2] = -radius_m * cos(vertex_to_nasion());
}

void sn_electrode_position(int64_t electrode, double radius_m, double position[3]) {
  double centre[3];
  position[0] = position[1] = position[2] = 0.0;
  if (electrode < 0 || electrode >= N_ELECTRODES) return;
  direction_of(position, &ELECTRODES[electrode]);
  sn_head_centre(radius_m, centre);
  for (int i = 0; i < 3; i++) position[i] = centre[i] + radius_m * position[i];
}

int64_t sn_electrode_nearest(const double position[3], double radius_m, double *angle_rad) {
  double centre[3], d[3], best = -2.0, norm = 0.0;
  int64_t nearest = -1;
  sn_head_centre(radius_m, centre);
  for (int i = 0; i < 3; i++) d[i] = position[i] - centre[i], norm += d[i] * d[i];
  norm = sqrt(norm);
  if (angle_rad != NULL) *angle_rad = NAN;
  if (!(norm > 0.0) || !isfinite(norm)) return -1;
  for (int64_t e = 0; e < N_ELECTRODES; e++) {
    double u[3];
    direction_of(u, &ELECTRODES[e]);
    double cosine = (u[0] * d[0] + u[1] * d[1] + u[2] * d[2]) / norm;
    if (cosine > best) best = cosine, nearest = e;
  }
  if (angle_rad != NULL) {
    /* Through the chord, which is exact for small angles where acos is not. */
    double u[3], chord = 0.0;
    direction_of(u, &ELECTRODES[nearest]);
    for (int i = 0; i < 3; i++) chord += (u[i] - d[i] / norm) * (u[i] - d[i] / norm);
    *angle_rad = 2.0 * asin(fmin(sqrt(chord) / 2.0, 1.0));
  }
  return nearest;
}

/* --- the name table --- */

/* Number SN_NAME_PAIRS + index: only append. */
static const char *const PAIRS[] = {
    "Fp1-F7",   "F7-T7",   "T7-P7", "P7-O1",  "Fp2-F8", "F8-T8", "T8-P8", "P8-O2", "Fp1-F3", "F3-C3", "C3-P3", "P3-O1",
    "Fp2-F4",   "F4-C4",   "C4-P4", "P4-O2",  "Fz-Cz",  "Cz-Pz", "A1-T7", "T7-C3", "C3-Cz",  "Cz-C4", "C4-T8", "T8-A2",
    "F7-Fp1",   "Fp1-Fp2", "F7-F3", "F3-Fz",  "Fz-F4",  "F4-F8", "P7-P3", "P3-Pz", "Pz-P4",  "P4-P8", "O1-O2", "O2-P8",
    "A2-A1",    "Fpz-Cz",  "Pz-Oz", "C3-A2",  "C4-A1",  "C3-M2", "C4-M1", "F3-M2", "F4-M1",  "F3-A2", "F4-A1", "O1-M2",
    "O2-M1",    "O1-A2",   "O2-A1", "Fp1-A2", "Fp2-A1", "Fz-A2", "Fz-M2", "Cz-A1", "Cz-M1",  "Cz-Oz", "P7-T7", "T7-FT9",
    "FT9-FT10", "FT10-T8", "A1-A2", "M1-M2",  "M2-M1",  "F4-F3", "C4-C3", "P4-P3",
};
enum { N_PAIRS = sizeof PAIRS / sizeof *PAIRS, N_MEG = 26 * 4 * 3 };
_Static_assert((int)SN_NAME_PAIRS + (int)N_PAIRS <= (int)SN_NAME_MEG, "pairs stay below the MEG sensors");
_Static_assert((int)SN_NAME_MEG + (int)N_MEG <= (int)SN_NAME_TABLE, "the table holds all");

/* "MEG0113", "MEG 0113": group 01..26, place 1..4, coil 1..3. */
static int32_t meg_number(const char *name) {
  if (strncasecmp(name, "MEG", 3) != 0) return -1;
  const char *digits = name + 3 + (name[3] == ' ');
  for (int i = 0; i < 4; i++)
    if (digits[i] < '0' || digits[i] > '9') return -1;
  int32_t group = 10 * (digits[0] - '0') + digits[1] - '0', place = digits[2] - '0', coil = digits[3] - '0';
  if (digits[4] != '\0' || group < 1 || group > 26 || place < 1 || place > 4 || coil < 1 || coil > 3) return -1;
  return SN_NAME_MEG + ((group - 1) * 4 + place - 1) * 3 + coil - 1;
}

int32_t sn_name_number(const char *cleaned_name) {
  int64_t electrode = sn_electrode_find(cleaned_name);
  if (electrode >= 0) return (int32_t)electrode;
  for (int32_t i = 0; i < N_PAIRS; i++)
    if (strcasecmp(cleaned_name, PAIRS[i]) == 0) return SN_NAME_PAIRS + i;
  return meg_number(cleaned_name);
}

bool sn_name_of_number(char name[SN_CHANNEL_NAME], int32_t number) {
  name[0] = '\0';
  if (number >= 0 && number < N_ELECTRODES)
    snprintf(name, SN_CHANNEL_NAME, "%s", ELECTRODES[number].name);
  else if (number >= SN_NAME_PAIRS && number < SN_NAME_PAIRS + N_PAIRS)
    snprintf(name, SN_CHANNEL_NAME, "%s", PAIRS[number - SN_NAME_PAIRS]);
  else if (number >= SN_NAME_MEG && number < SN_NAME_MEG + N_MEG) {
    int32_t i = number - SN_NAME_MEG;
    snprintf(name, SN_CHANNEL_NAME, "MEG%02d%d%d", i / 12 + 1, i / 3 % 4 + 1, i % 3 + 1);
  }
  return name[0] != '\0';
}

/* --- BioSemi --- */

static const char *const BIOSEMI_32[32] = {"Fp1", "AF3", "F7",  "F3",  "FC1", "FC5", "T7",  "C3",  "CP1", "CP5", "P7",
                                           "P3",  "Pz",  "PO3", "O1",  "Oz",  "O2",  "PO4", "P4",  "P8",  "CP6", "CP2",
                                           "C4",  "T8",  "FC6", "FC2", "F4",  "F8",  "AF4", "Fp2", "Fz",  "Cz"};
static const char *const BIOSEMI_64[64] = {
    "Fp1", "AF7", "AF3", "F1",  "F3",  "F5",  "F7",  "FT7", "FC5", "FC3", "FC1", "C1",  "C3",  "C5",  "T7",  "TP7",
    "CP5", "CP3", "CP1", "P1",  "P3",  "P5",  "P7",  "P9",  "PO7", "PO3", "O1",  "Iz",  "Oz",  "POz", "Pz",  "CPz",
    "Fpz", "Fp2", "AF8", "AF4", "AFz", "Fz",  "F2",  "F4",  "F6",  "F8",  "FT8", "FC6", "FC4", "FC2", "FCz", "Cz",
    "C2",  "C4",  "C6",  "T8",  "TP8", "CP6", "CP4", "CP2", "P2",  "P4",  "P6",  "P8",  "P10", "PO8", "PO4", "O2"};

int64_t sn_biosemi_electrode(const char *pin, int64_t cap_channels) {
  int letter = pin[0] | 0x20, number = 0;
  if ((cap_channels != 32 && cap_channels != 64) || (letter != 'a' && letter != 'b')) return -1;
  for (const char *p = pin + 1; *p != '\0'; p++) {
    if (*p < '0' || *p > '9' || number > 32) return -1;
    number = 10 * number + *p - '0';
  }
  if (number < 1 || number > 32) return -1;
  int64_t index = (letter == 'b' ? 32 : 0) + number - 1;
  if (index >= cap_channels) return -1;
  return sn_electrode_find(cap_channels == 32 ? BIOSEMI_32[index] : BIOSEMI_64[index]);
}

/* --- channels --- */

static bool is_measured(const sn_channel *channel) { return channel->has_position && channel->frame == SN_FRAME_HEAD; }

sn_position_from sn_layout_position(double position[3], const sn_channel *channel, const sn_place_options *options) {
  double radius = options != NULL && options->radius_m > 0.0 ? options->radius_m : SN_HEAD_RADIUS_M, other[3];
  sn_channel_name name;
  if (is_measured(channel)) {
    memcpy(position, channel->position_m, sizeof channel->position_m);
    return channel->position_from != SN_POSITION_UNKNOWN ? channel->position_from : SN_POSITION_FILE;
  }
  position[0] = position[1] = position[2] = 0.0;
  if (options != NULL && options->biosemi_cap != 0) {
    int64_t electrode = sn_biosemi_electrode(channel->name, options->biosemi_cap);
    if (electrode >= 0) {
      sn_electrode_position(electrode, radius, position);
      return SN_POSITION_LAYOUT;
    }
  }
  sn_channel_name_parse(&name, channel->name);
  if (name.electrode >= 0) {
    sn_electrode_position(name.electrode, radius, position);
    return SN_POSITION_LAYOUT;
  }
  if (name.pair[0] < 0 || name.pair[1] < 0) return SN_POSITION_UNKNOWN;
  sn_electrode_position(name.pair[0], radius, position);
  sn_electrode_position(name.pair[1], radius, other);
  for (int i = 0; i < 3; i++) position[i] = 0.5 * (position[i] + other[i]);
  return SN_POSITION_MIDPOINT;
}

void sn_layout_place(sn_recording *recording, const sn_place_options *options, int64_t *n_without) {
  int64_t without = 0;
  for (int64_t c = 0; c < recording->n_channels; c++) {
    sn_channel *channel = &recording->channels[c];
    double position[3];
    if (channel->kind != SN_SENSOR_EEG || is_measured(channel)) continue;
    sn_position_from from = sn_layout_position(position, channel, options);
    if (from == SN_POSITION_UNKNOWN) {
      without++;
      continue;
    }
    memcpy(channel->position_m, position, sizeof position);
    channel->has_position = true, channel->frame = SN_FRAME_HEAD, channel->position_from = from;
  }
  if (n_without != NULL) *n_without = without;
}
