/* EEG and MEG as a modality (modalities/modality.h): its series are sensors with a place on the head.
 *
 * A series is an electrode against a reference, a bipolar pair, or a MEG coil (montage.h); its id is the number of its
 * name (sn_name_number, -1: not in that table), its position that of the file, else the one its name says on a sphere
 * (layout.h), its orientation that of the coil.
 *
 * RECIPE.  That of REVE (El Ouahidi et al., 2025) for sizes: 200 Hz, patches of 1 s every 0.9 s (200 samples with stride
 * 180), windows of 10 s (11 patches a series), each channel z-scored over its recording, clipped at 15.  The band,
 * 0.5-45 Hz, is our choice: it leaves out the mains of either kind, so that no notch is needed. */
#ifndef SN_MODALITIES_EEG_EEG_H
#define SN_MODALITIES_EEG_EEG_H

#include <stdint.h>

#include "modalities/eeg/montage.h"
#include "modalities/modality.h"

extern const sn_modality sn_modality_eeg;

enum { SN_EEG_WANTED = 512, SN_EEG_WANTED_TEXT = 4096 };

/* eeg.reference eeg.channels eeg.kinds eeg.unknown_channel eeg.bad_channels eeg.head_radius eeg.biosemi_cap */
typedef struct sn_eeg_settings {
  sn_montage_options montage;      /* its list of wanted channels is made from the two below at each use */
  int64_t n_wanted;                /* 0: all */
  char wanted[SN_EEG_WANTED_TEXT]; /* names, each ended by a 0 */
} sn_eeg_settings;

#endif
