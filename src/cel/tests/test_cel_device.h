/* test_cel_device.h - a device for the tests of selectors. */
#ifndef DV_CEL_TEST_CEL_DEVICE_H
#define DV_CEL_TEST_CEL_DEVICE_H

#include <stdbool.h>

struct dv_arena;
struct dv_cel_device;

/* driver dra.example.com: name "fish", cores 8, ok true, ver 1.2.3, other.example.com/name "bird",
 * memory 16Gi; with lists: nums [3, 1, 2] and names ["red", "green"]. */
struct dv_cel_device *dv_cel_test_device(bool has_lists, struct dv_arena *arena);

#endif
