/* test_fetch.h - a client on the fixture's loop, and fetches that keep what they were told. */
#ifndef DV_REST_TEST_FETCH_H
#define DV_REST_TEST_FETCH_H

#include "base/buf.h"
#include "base/err.h"
#include "rest/rest.h"
#include "rest/tests/test_rest_fixture.h"

struct asker {
    struct fixture *fixture;
    struct dv_rest_client_options options; /* for asker_open; without a URL: the fixture's server */
    struct dv_rest_client *client;
    int n_closed;
};

struct ask {
    struct dv_rest_fetch fetch;
    struct asker *asker;
    int n_done;
    struct dv_err err; /* code DV_OK: success */
    unsigned status;
    struct dv_buf body; /* gathered or in parts */
    struct dv_buf fields;
    int n_parts;
    void (*on_part)(struct ask *ask);
    void (*on_done)(struct ask *ask);
};

void asker_open(struct asker *asker, struct fixture *fixture);
void asker_close(struct asker *asker); /* waits until it is */

/* Fills in what a GET of `target` needs, with a deadline of a minute. */
void ask_init(struct ask *ask, struct asker *asker, const char *method, const char *target);
void ask_stream(struct ask *ask); /* parts, no deadline */
void ask_start(struct ask *ask);
void ask_wait(struct ask *ask); /* until it is done; once */
void ask_fini(struct ask *ask);
/* All of it: the answer's status and its body. */
void ask_expect(struct asker *asker, const char *method, const char *target, const char *body,
                unsigned status, const char *answer);
/* Until the text has come in the body. */
void ask_wait_for(struct ask *ask, const char *text);

#endif
