#include "pod/agent/agent_pause.h"

#include "base/ascii.h"
#include "base/num.h"

/* A run of hexadecimal digits alone that is this long counts as an id, not as a word. */
#define HEX_WORD_MIN 4u

uint64_t dv_agent_pause_fail(struct dv_agent_pause *pause, uint64_t now_ms, uint64_t max_ms)
{
    uint64_t length_ms =
        dv_u64_min(pause->next_ms ? pause->next_ms : DV_AGENT_PAUSE_FIRST_MS, max_ms);

    pause->next_ms = dv_u64_min(length_ms * 2, max_ms);
    if (pause->is_woken)
        pause->wake_ms = pause->wake_ms ? dv_u64_min(pause->wake_ms * 2, DV_AGENT_PAUSE_MAX_MS)
                                        : DV_AGENT_WAKE_FIRST_MS;
    pause->failed_ms = now_ms;
    pause->is_woken = false;
    return length_ms;
}

uint64_t dv_agent_pause_wake(struct dv_agent_pause *pause, uint64_t now_ms, uint64_t due_ms)
{
    uint64_t at_ms = dv_u64_add_clamped(pause->failed_ms, pause->wake_ms);

    at_ms = at_ms > now_ms ? at_ms : now_ms;
    if (at_ms >= due_ms)
        return due_ms;
    pause->is_woken = true;
    return at_ms;
}

/* ---- messages ---- */

/* Whether the character joins the parts of a time, a UUID or a fraction. */
static bool is_joint(char c)
{
    return c == '.' || c == ':' || c == '-';
}

/* Takes the next word, with its joints, or the next character that belongs to none. */
static dv_str next_piece(dv_str *rest)
{
    size_t n = 0;
    dv_str piece;

    while (n < rest->n &&
           (dv_is_alphanumeric(rest->p[n]) || (n > 0 && is_joint(rest->p[n]) && n + 1 < rest->n &&
                                               dv_is_alphanumeric(rest->p[n + 1]))))
        n++;
    if (n == 0)
        n = 1;
    piece = dv_str_slice(*rest, 0, n);
    *rest = dv_str_slice(*rest, n, rest->n);
    return piece;
}

/* Whether the piece is a number, or an id: it contains a digit, or consists of hexadecimal
 * digits. */
static bool is_varying(dv_str piece)
{
    bool is_hex = piece.n >= HEX_WORD_MIN;

    for (size_t i = 0; i < piece.n; i++) {
        if (dv_is_digit(piece.p[i]))
            return true;
        is_hex = is_hex && dv_is_hex(piece.p[i]);
    }
    return is_hex;
}

bool dv_agent_says_same(dv_str a, dv_str b)
{
    while (a.n > 0 && b.n > 0) {
        dv_str x = next_piece(&a);
        dv_str y = next_piece(&b);

        if (!dv_str_eq(x, y) && (!is_varying(x) || !is_varying(y)))
            return false;
    }
    return a.n == 0 && b.n == 0;
}
