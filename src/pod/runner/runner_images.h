/* runner_images.h - removes images that nobody uses when their disk is nearly full (image_gc.h):
 * looked at every five minutes, and soon after the runtime has come for the first time. */
#ifndef DV_POD_RUNNER_IMAGES_H
#define DV_POD_RUNNER_IMAGES_H

#include <stdbool.h>

struct dv_runner;
struct dv_runner_images;

struct dv_runner_images *dv_runner_images_new(struct dv_runner *runner);
/* Ends what is under way: dv_runner_check_closed runs when that is done. */
void dv_runner_images_stop(struct dv_runner_images *images);
bool dv_runner_images_are_busy(const struct dv_runner_images *images);
void dv_runner_images_free(
    struct dv_runner_images *images); /* nothing is under way; NULL is fine */

#endif
