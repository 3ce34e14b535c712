/* test_visit.h - what runs in a container when kubectl asks for it, over our sessions. It blocks:
 * each runs in a process of its own. */
#ifndef DV_UPGRADE_TEST_VISIT_H
#define DV_UPGRADE_TEST_VISIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "upgrade/channels.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/websocket.h"

enum program {
    RUN_ECHO, /* a line to each output */
    RUN_CAT,  /* what comes in goes out */
    RUN_FAIL, /* exit code 5 */
    RUN_BIG,  /* many bytes */
};

struct visit {
    int fd;
    enum program program;
    bool is_done; /* the program has ended */
    size_t left;  /* bytes that it has to write */

    struct dv_channels_handler channels_handler;
    struct dv_channels *channels;

    struct dv_spdy_handler spdy_handler;
    struct dv_spdy *spdy;
    struct dv_exec_streams streams;
    struct dv_port_pairs pairs;
    bool is_exec;
    struct dv_ws_handler tunnel_handler;
    struct dv_ws *tunnel; /* NULL: SPDY is spoken on the connection itself */
};

/* Ends the process when the client is gone, or when something did not work. */
void write_all(int fd, dv_str bytes);
void must(bool is_fine, const struct dv_err *err);

/* Runs the program until the connection ends. */
void visit_channels(struct visit *visit, const struct dv_channel_protocol *protocol);
/* Like visit_channels, or echoes on ports; is_tunnelled: the bytes are in a WebSocket. */
void visit_spdy(struct visit *visit, bool is_tunnelled);

#endif
