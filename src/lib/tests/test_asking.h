/* test_asking.h - a driver that notes what it is asked, for this module's tests. */
#ifndef DV_LIB_TEST_ASKING_H
#define DV_LIB_TEST_ASKING_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "davit/driver.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

struct dv_arena;
struct probe;

#define ALLOCATE "/v1beta1.DevicePlugin/Allocate"

/* What the driver does with calls; one test at a time. */
struct asked {
    struct dv_buf ids; /* "a,b;" each */
    struct davit_call *held[4];
    size_t n_held;
    void (*add)(struct davit_call *call); /* then it finishes the call; NULL: holds it */
};
extern struct asked asked;

/* Of cmocka: a node with this driver's plugin, and a channel to it. */
int asking_start(void **state);
int asking_end(void **state);

/* "a,b c" asks for two containers: a and b, and c; "" asks for none, " " for two without any. */
const DpV1beta1__AllocateRequest *make_ask(const char *text, struct dv_arena *arena);
const DpV1beta1__AllocateResponse *read_answer(const struct probe *probe, struct dv_arena *arena);

#endif
