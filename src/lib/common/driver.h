/* driver.h - the insides of a davit_driver, and errors as callers of the library get them. */
#ifndef DV_LIB_DRIVER_H
#define DV_LIB_DRIVER_H

#include <stdbool.h>

#include "base/list.h"

struct davit_driver;
struct davit_error;
struct dv_clock;
struct dv_err;
struct dv_loop;

struct davit_driver {
    struct dv_loop *loop;
    bool is_embedded;       /* the loop is another's, and the driver goes with its last plugin */
    struct dv_list plugins; /* struct davit_device_plugin: open, or closing */
    struct dv_list dras;    /* struct davit_dra: open, or closing */
    struct dv_list polls;   /* struct davit_poll */
    struct dv_list signals; /* struct signal */
};

/* `clock` is borrowed for the driver's life. */
struct davit_driver *dv_lib_driver_new(struct dv_clock *clock, struct dv_err *err);

/* Makes a driver on a loop that is another's: for one plugin, with which it goes. */
struct davit_driver *dv_lib_driver_embedded(struct dv_loop *loop);

/* Puts the error into that of a function of the public API; `error` may be NULL. Returns false. */
bool dv_lib_fail(struct davit_error *error, const struct dv_err *err);

#endif
