/* exchange.h - the calls of a recording as wholes, and which of them a new call is like. */
#ifndef DV_CLI_EXCHANGE_H
#define DV_CLI_EXCHANGE_H

#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_arena;
struct dv_tape;
struct dv_tape_record;

/* A message of an answer. */
struct dv_exchange_answer {
    const struct dv_tape_record *record;
    uint64_t after_ns; /* since the call began */
};

/* A call that was recorded. */
struct dv_exchange {
    const struct dv_tape_record *start;
    const struct dv_tape_record *request; /* with the message; NULL: it is missing */
    DV_VEC(struct dv_exchange_answer) answers;
    const struct dv_tape_record *end; /* NULL: the recording ends before */
    dv_str driver;
    unsigned n_used; /* how often it has answered a new call */
};

struct dv_exchanges {
    DV_VEC(struct dv_exchange *) v;
    struct dv_arena *arena;
};

/* Gathers the calls, in their order, with those to other drivers left out; `driver` may be empty.
 * What a file repeats from an earlier one counts where the earlier one is missing. */
void dv_exchanges_gather(struct dv_exchanges *exchanges, const struct dv_tape *tape, dv_str driver,
                         struct dv_arena *arena);
void dv_exchanges_fini(struct dv_exchanges *exchanges);
/* The one driver that the calls are to. DV_FAILED_PRECONDITION names them when there are several,
 * or says that there is none. */
DV_CHECKED bool dv_exchanges_driver(const struct dv_exchanges *exchanges, dv_str *driver,
                                    struct dv_err *err);

/* Texts of a recorded request, and what a new one has in their place. */
struct dv_exchange_pair {
    dv_str recorded;
    dv_str now;
};
struct dv_exchange_pairs {
    DV_VEC(struct dv_exchange_pair) v;
};

/* The recorded call that a new one is most like: of the same method, with the same fields, with as
 * many equal texts as there are; of several, the first that was not used yet, else the last.
 * `pairs` gets the texts that differ. NULL: none has the same fields. */
struct dv_exchange *dv_exchange_choose(const struct dv_exchanges *exchanges, dv_str method,
                                       dv_str request, struct dv_exchange_pairs *pairs);
/* The record's message with what the pairs say: in place of a text that is equal to a recorded one,
 * and of a longer one inside of other texts, as claim UIDs are in CDI names. The bytes are in
 * `arena`. */
DV_CHECKED bool dv_exchange_translate(const struct dv_tape_record *record,
                                      const struct dv_exchange_pairs *pairs, struct dv_arena *arena,
                                      dv_str *bytes, struct dv_err *err);

#endif
