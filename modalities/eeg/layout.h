/* The 10-20, 10-10 and 10-05 electrodes: names, numbers, and positions computed from the definition.
 *
 * DEFINITION (Jasper 1958; Oostenveld and Praamstra, Clin. Neurophysiol. 112 (2001) 713).  Four points are given:
 * nasion Nz, inion Iz, and the ear points (T9, T10).  The midline arc Nz - Cz - Iz is divided in 20 steps of 5 %: Nz 0,
 * Fpz 10, AFz 20, Fz 30, FCz 40, Cz 50, CPz 60, Pz 70, POz 80, Oz 90, Iz 100.  The coronal arc T9 - Cz - T10 likewise:
 * T7 lies at 10 %.  Contours at the heights 0 % (Nz, T9, Iz), 5 % and 10 % (Fpz, T7, Oz) are divided along their
 * length: Fp1 at 10 % of the way Fpz - T7 - Oz, AF7 20, F7 30, FT7 40, T7 50, ..., O1 90.  Each row between is the arc
 * through its contour point on the left, its midline point, and its contour point on the right, cut in eighths from the
 * midline: F1h, F1, F3h, F3, F5h, F5, F7h, F7.
 *
 * ON A SPHERE.  Let q be the angle at the centre between vertex and nasion; by symmetry the inion and the ear points
 * lie at the same angle.  Then midline at a %:          angle q (1 - a/50) from the vertex, in the plane x = 0,
 * forwards where positive contour of height h %:   the circle at angle q (1 - h/50); a point a % of the way lies 1.8 a
 * degrees from the front row a, k eighths:        on the circle in which the plane through (contour 10 %, left),
 * midline and (contour 10 %, right) cuts the sphere, at k/8 of the angle from midline to contour point about the
 *                            circle's own centre
 * q = 115 degrees (so 10 % is 23 degrees, as in BESA's spherical coordinates): a sphere fitted to scalps has its centre
 * some 4 cm above the plane of nasion and ear points.
 *
 * FRAME.  Head frame (Neuromag): origin between the ear points, x to the right one, y to the nasion, z up.  The sphere
 * of radius R has its centre at (0, 0, -R cos q), 0.0401 m for R = 0.095 m, so that Nz, T9, T10 and Iz lie in z = 0.
 *
 * A1, A2, M1, M2 are not part of the definition: lobes are put 5 % below T9 and T10, mastoids 5 % below TP9 and TP10.
 *
 * HOW FAR FROM REAL HEADS: tests/golden/layout_deviation.tsv holds the angle (from the centre of a fitted sphere)
 * between each position here and the published standard_1005 template; docs/modalities/eeg.md states the largest. */
#ifndef SN_MODALITIES_EEG_LAYOUT_H
#define SN_MODALITIES_EEG_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

#define SN_HEAD_RADIUS_M 0.095
#define SN_HEAD_ANGLE_DEG 115.0 /* vertex to nasion, seen from the centre */

typedef enum sn_electrode_system {
  SN_SYSTEM_1020 = 0,
  SN_SYSTEM_1010,
  SN_SYSTEM_1005,
  SN_SYSTEM_EAR
} sn_electrode_system;

/* Numbers are stored in batches and checkpoints: the table is append only. [0, count). */
int64_t sn_electrode_count(void);
const char *sn_electrode_name(int64_t electrode);              /* "Fp1"; "?" outside */
sn_electrode_system sn_electrode_system_of(int64_t electrode); /* the coarsest system that has it */
int64_t sn_electrode_find(const char *name);                   /* any case; T3, T4, T5, T6 too; -1 */
int64_t sn_electrode_stand_in(int64_t electrode);              /* A1 <-> M1, A2 <-> M2; -1 for the others */

/* Position in metres in the head frame on the sphere of that radius (zeros for a number that is not in the table). */
void sn_electrode_position(int64_t electrode, double radius_m, double position[3]);
void sn_head_centre(double radius_m, double centre[3]);
/* Number of the electrode nearest in direction from the sphere's centre; *angle_rad (may be NULL) between the two. */
int64_t sn_electrode_nearest(const double position[3], double radius_m, double *angle_rad);

/* THE NAME TABLE of learned encodings: one number for a name, append only, below SN_NAME_TABLE.
 *   [0, 512)       electrodes, the numbers above
 *   [512, 1024)    bipolar pairs of the named chains of montage.h and of common sleep and ear derivations
 *   [1024, 1344)   Neuromag sensors MEG0111 .. MEG2643 (with or without a blank): 1024 + ((group-1)*4 + place-1)*3 +
 * k-1 -1: not in the table. */
enum { SN_NAME_PAIRS = 512, SN_NAME_MEG = 1024, SN_NAME_TABLE = 1344 };
int32_t sn_name_number(const char *cleaned_name);
/* "Fp1", "Fp1-F7", "MEG0113"; false where the number is not taken. */
bool sn_name_of_number(char name[SN_CHANNEL_NAME], int32_t number);

/* Electrode at pin "A1".."B32" of a BioSemi cap of 32 or 64 channels, by the maker's tables; -1: no such cap or pin.
 * The caps of 128, 160 and 256 are not tables of 10-05 names: their positions have to come from a file. */
int64_t sn_biosemi_electrode(const char *pin, int64_t cap_channels);

typedef enum sn_place_policy {
  SN_PLACE_REFUSE = 0, /* SN_E_ARGUMENT names the channels that have no position */
  SN_PLACE_WITHOUT,    /* they are taken without one */
  SN_PLACE_DROP        /* they are left out, and counted */
} sn_place_policy;

typedef struct sn_place_options {
  double radius_m; /* 0: SN_HEAD_RADIUS_M */
  sn_place_policy policy;
  int64_t biosemi_cap; /* 0: pins are never placed; 32 or 64 */
} sn_place_options;

/* Position of one channel: measured in the head frame (position_from FILE, SIDECAR as it is), else that of the
 * electrode that its name says, else the midpoint of the pair that its name says.  The device frame does not count.
 * SN_POSITION_UNKNOWN: none, and position is zeros. */
sn_position_from sn_layout_position(double position[3], const sn_channel *channel, const sn_place_options *options);

/* For inspection and sidecars: gives every EEG channel of the recording that has none such a position. *n_without (may
 * be NULL): EEG channels that still have none. */
void sn_layout_place(sn_recording *recording, const sn_place_options *options, int64_t *n_without);

#endif
