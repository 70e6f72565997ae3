/* The head frame (SN_FRAME_HEAD) from three fiducials, for readers and sidecars. */
#ifndef SN_MODALITIES_HEAD_FRAME_H
#define SN_MODALITIES_HEAD_FRAME_H

#include <stdbool.h>

/* head = axes (p - origin). The axes are rows: unit vectors in the frame of p. */
typedef struct sn_head_frame {
  bool known;
  double origin[3], axes[3][3];
} sn_head_frame;

/* x from the left ear point to the right one, y at right angles to it through the nasion, z up; origin at the nasion's foot on
 * the line between the ears. Points in metres. false, and not known, where they coincide, stand in one line, or are not finite. */
bool sn_head_frame_make(sn_head_frame *frame, const double left[3], const double right[3], const double nasion[3]);
/* head and p may not overlap. Of a direction only the turning counts. */
void sn_head_frame_point(const sn_head_frame *frame, const double p[3], double head[3]);
void sn_head_frame_direction(const sn_head_frame *frame, const double p[3], double head[3]);

double sn_dot3(const double a[3], const double b[3]);
bool sn_normalise3(double v[3]); /* to length 1; false, and untouched, below 1e-6 or not finite */

#endif
