/* Settings of training (train.*), and the tables that a pretraining configuration is made of. */
#ifndef SN_ENGINE_TRAIN_CONFIG_H
#define SN_ENGINE_TRAIN_CONFIG_H

#include "core/config.h"
#include "core/tensor.h"
#include "engine/schedule.h"
#include "kernels/device.h"

extern const sn_config_entry sn_train_config[];

/* A configuration from train, encoder and objective tables plus `extra` (n_extra tables of the modality; may be 0). */
SN_MUST_CHECK sn_status sn_engine_config_create(const sn_config_entry *const *extra, int64_t n_extra, sn_config **out,
                                                sn_error *err);

/* train.schedule over `total` steps with the peak lr. SN_E_ARGUMENT: a setting that belongs to another schedule, step
 * without milestones. */
SN_MUST_CHECK sn_status sn_train_schedule(const sn_config *config, double lr, int64_t total, sn_schedule *schedule,
                                          sn_error *err);

/* train.dtype resolved: auto takes bf16 where the device is fast at it. residual and product as kernels/tape.h has them;
 * *name is "f32", "bf16" or "f64". */
void sn_train_dtypes(const sn_config *config, const sn_device *device, sn_dtype *residual, sn_dtype *product,
                     const char **name);

#endif
