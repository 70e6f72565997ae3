#include "engine/presets.h"

#include <string.h>

/* The minimal build has no recordings, and no key that says of what they are. */
#ifdef SONDE_MINIMAL
#define ECG ""
#else
#define ECG "data.modality=ecg\n"
#endif

const sn_preset sn_presets[] = {
    {"ecg-tiny", "0.8 M parameters: minutes on a laptop", "ecg",
     ECG "model.width=128\nmodel.depth=4\nmodel.heads=4\n"
     "mae.decoder_width=96\nmae.decoder_depth=1\nmae.decoder_heads=3\nmae.mask_ratio=0.75\n"
     "train.steps=2500\ntrain.lr=2e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=6400\n"},
    {"ecg-small", "21 M parameters (ViT-S)", "ecg",
     ECG "model.width=384\nmodel.depth=12\nmodel.heads=6\n"
     "mae.decoder_width=192\nmae.decoder_depth=4\nmae.decoder_heads=6\nmae.mask_ratio=0.75\n"
     "train.steps=50000\ntrain.lr=1e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=19200\n"},
    {"ecg-base", "85 M parameters (ViT-B)", "ecg",
     ECG "model.width=768\nmodel.depth=12\nmodel.heads=12\n"
     "mae.decoder_width=384\nmae.decoder_depth=4\nmae.decoder_heads=12\nmae.mask_ratio=0.75\n"
     "train.steps=100000\ntrain.lr=6e-4\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=38400\n"},
#ifndef SONDE_MINIMAL /* their keys belong to recordings, which that build does not read */
    {"ecg-beats-tiny", "ecg-tiny on whole beats, resampled, with RR features: a quarter of the tokens", "ecg",
     "data.modality=ecg\ndata.tokens=beat_resample\ndata.beat_plan=scan\nmodel.input=standardized\n"
     "model.width=128\nmodel.depth=4\nmodel.heads=4\n"
     "mae.decoder_width=96\nmae.decoder_depth=1\nmae.decoder_heads=3\nmae.mask_ratio=0.5\n"
     "train.steps=2500\ntrain.lr=2e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=1600\n"},
    {"ecg-beats-small", "ecg-small on whole beats", "ecg",
     "data.modality=ecg\ndata.tokens=beat_resample\ndata.beat_plan=scan\nmodel.input=standardized\n"
     "model.width=384\nmodel.depth=12\nmodel.heads=6\n"
     "mae.decoder_width=192\nmae.decoder_depth=4\nmae.decoder_heads=6\nmae.mask_ratio=0.5\n"
     "train.steps=50000\ntrain.lr=1e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=6400\n"},
    {"eeg-tiny", "0.8 M parameters: EEG (or EEG with MEG) on a laptop", "eeg",
     "data.modality=eeg\ndata.tokens=log_rfft\nmodel.position=fourier4d\nmodel.channel=none\n"
     "mae.target=spectrum\nmae.mask=spacetime\n"
     "model.width=128\nmodel.depth=4\nmodel.heads=4\n"
     "mae.decoder_width=96\nmae.decoder_depth=1\nmae.decoder_heads=3\nmae.mask_ratio=0.55\n"
     "train.steps=2500\ntrain.lr=2e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=6400\n"},
    {"eeg-small", "21 M parameters (ViT-S)", "eeg",
     "data.modality=eeg\nmodel.position=fourier4d\nmodel.channel=none\nmae.target=raw\nmae.mask=spacetime\n"
     "model.width=384\nmodel.depth=12\nmodel.heads=6\n"
     "mae.decoder_width=192\nmae.decoder_depth=4\nmae.decoder_heads=6\nmae.mask_ratio=0.55\n"
     "train.steps=50000\ntrain.lr=1e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=19200\n"},
    {"eeg-base", "85 M parameters (ViT-B)", "eeg",
     "data.modality=eeg\nmodel.position=fourier4d\nmodel.channel=none\nmae.target=raw\nmae.mask=spacetime\n"
     "model.width=768\nmodel.depth=12\nmodel.heads=12\n"
     "mae.decoder_width=384\nmae.decoder_depth=4\nmae.decoder_heads=12\nmae.mask_ratio=0.55\n"
     "train.steps=100000\ntrain.lr=6e-4\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=38400\n"},
    {"meg-tiny", "0.8 M parameters: MEG alone, magnetometers and gradiometers each scaled as a group", "eeg",
     "data.modality=eeg\neeg.kinds=mag,grad\ndata.normalize=group\n"
     "model.position=sensor6d,sincos\nmodel.channel=none\nmae.target=raw\nmae.mask=spacetime\n"
     "model.width=128\nmodel.depth=4\nmodel.heads=4\n"
     "mae.decoder_width=96\nmae.decoder_depth=1\nmae.decoder_heads=3\nmae.mask_ratio=0.55\n"
     "train.steps=2500\ntrain.lr=2e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=6400\n"},
    {"meg-base", "85 M parameters (ViT-B)", "eeg",
     "data.modality=eeg\neeg.kinds=mag,grad\ndata.normalize=group\n"
     "model.position=sensor6d,sincos\nmodel.channel=none\nmae.target=raw\nmae.mask=spacetime\n"
     "model.width=768\nmodel.depth=12\nmodel.heads=12\n"
     "mae.decoder_width=384\nmae.decoder_depth=4\nmae.decoder_heads=12\nmae.mask_ratio=0.55\n"
     "train.steps=100000\ntrain.lr=6e-4\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=38400\n"},
    {"eeg-meg-tiny", "0.2 M parameters: EEG of any headset and MEG together (docs/sources.md), minutes on a laptop", "eeg",
     "data.modality=eeg\ndata.rate=125 Hz\ndata.window=10 s\ndata.patch=2 s\ndata.patch_stride=2 s\n"
     "data.normalize=zscore-window\ndata.clip=0\ndata.crop=random\n"
     "data.tokens=log_rfft\ndata.spectrum_low=0.4 Hz\ndata.spectrum_high=45 Hz\ndata.spectrum_floor=0.01\n"
     "model.input=standardized\nmodel.position=sensor6d,sincos\nmodel.channel=none\n"
     "mae.target=raw\nmae.target_standardize=true\nmae.mask=channel\nmae.mask_ratio=0.5\n"
     "model.width=64\nmodel.depth=2\nmodel.heads=4\n"
     "mae.decoder_width=48\nmae.decoder_depth=1\nmae.decoder_heads=3\n"
     "train.steps=1500\ntrain.lr=2e-3\ntrain.weight_decay=0.05\ntrain.clip=1\ntrain.warmup=0.05\n"
     "train.pack_tokens=3840\n"},
#endif
    {"synthetic-tiny", "the model of ecg-tiny on synthetic tokens: needs no data", "",
     "model.width=128\nmodel.depth=4\nmodel.heads=4\n"
     "mae.decoder_width=96\nmae.decoder_depth=1\nmae.decoder_heads=3\n"
     "train.steps=200\ntrain.lr=2e-3\ntrain.pack_tokens=3200\ndata.dir=synthetic\n"},
    {NULL, NULL, NULL, NULL}};

enum { MOST_PRESETS = 64 };

sn_status sn_preset_apply(sn_config *config, const char *name, const sn_preset **found, sn_error *err) {
  const char *names[MOST_PRESETS];
  int64_t n = 0;
  for (const sn_preset *p = sn_presets; p->name != NULL && n < MOST_PRESETS; p++) {
    names[n++] = p->name;
    if (strcmp(p->name, name) != 0) continue;
    if (found != NULL) *found = p;
    return sn_config_load_pairs(config, p->settings, p->name, err);
  }
  const char *near = sn_nearest_name(name, names, n);
  return sn_fail(err, SN_E_ARGUMENT, "preset '%s' is not known%s%s%s; `sonde pretrain --help` lists them", name,
                 near ? ", did you mean '" : "", near ? near : "", near ? "'" : "");
}
