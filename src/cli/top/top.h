/* top.h - davit top: the node on a screen. What is shown is decided purely: the newest lists and
 * the keys pressed in, lines of text out. */
#ifndef DV_CLI_TOP_H
#define DV_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct NodeV1__ListClaimsResponse;
struct NodeV1__ListDevicesResponse;
struct NodeV1__ListLeasesResponse;
struct NodeV1__ListPluginsResponse;
struct NodeV1__StatusResponse;
struct NodeV1__WatchPodsResponse;
struct dv_arena;

enum dv_top_section {
    DV_TOP_DEVICES,
    DV_TOP_CLAIMS,
    DV_TOP_PODS,
    DV_TOP_PLUGINS,
    DV_TOP_EVENTS,
};
#define DV_TOP_N_SECTIONS 5u

struct dv_top_event {
    dv_str uid;
    int64_t at_ms; /* unix time */
    dv_str type;
    dv_str reason;
    dv_str object; /* "Pod train-0" */
    dv_str message;
    uint64_t count;
};

/* What is known of the node. A NULL member: nothing yet. */
struct dv_top_data {
    const struct NodeV1__StatusResponse *status;
    const struct NodeV1__ListPluginsResponse *plugins;
    const struct NodeV1__ListDevicesResponse *devices;
    const struct NodeV1__WatchPodsResponse *pods;
    const struct NodeV1__ListLeasesResponse *leases;
    const struct NodeV1__ListClaimsResponse *claims;
    const struct dv_top_event *events; /* the newest first */
    size_t n_events;
    dv_str events_note; /* why there are none */
    dv_str trouble;     /* why davitd does not answer; empty: it does */
    int64_t now_ms;
};

#define DV_TOP_FILTER_MAX 63u

/* The state of the screen as the user has set it. */
struct dv_top_view {
    unsigned width;
    unsigned height; /* 0: as high as it takes, for a reader that is no terminal */
    bool has_colours;
    enum dv_top_section section;
    size_t scroll[DV_TOP_N_SECTIONS];
    size_t page; /* rows of the section that were shown last */
    char filter[DV_TOP_FILTER_MAX + 1];
    bool is_typing; /* the filter */
    bool is_over;
};

/* ---- top_keys.c ---- */

/* Handles what a terminal sent: keys, whole. */
void dv_top_press(struct dv_top_view *view, dv_str bytes);

/* ---- top_rows.c ---- */

#define DV_TOP_COLUMNS_MAX 5u

struct dv_top_row {
    const char *cells[DV_TOP_COLUMNS_MAX];
    bool is_group; /* a line of its own above others: cells[0], then what cells[1] says of it */
};

struct dv_top_rows {
    const char *const *headers;
    size_t n_columns;
    struct dv_top_row *v;
    size_t n;
    size_t size;
    size_t n_items;    /* rows that are no groups */
    const char *empty; /* what there is to say when there are none */
};

const char *dv_top_section_name(enum dv_top_section section);
/* Makes the rows that have `filter` in one of their cells, in any case of letters; all where it is
 * empty. */
void dv_top_rows_make(const struct dv_top_data *data, enum dv_top_section section, dv_str filter,
                      struct dv_arena *arena, struct dv_top_rows *rows);
/* "10 free, 5 held, 1 unhealthy", of all devices. */
const char *dv_top_devices_text(const struct dv_top_data *data, struct dv_arena *arena);

/* ---- top_frame.c ---- */

struct dv_top_frame {
    dv_str *lines;
    size_t n;
};

/* Draws it; what has been scrolled too far is put right in `view`. */
void dv_top_draw(const struct dv_top_data *data, struct dv_top_view *view, struct dv_arena *arena,
                 struct dv_top_frame *frame);

#endif
