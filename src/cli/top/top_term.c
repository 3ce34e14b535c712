#include "cli/top/top_term.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/top/top.h"

/* The other screen, no cursor, no wrapping of long lines; and back. */
#define TAKE "\033[?1049h\033[?25l\033[?7l\033[2J"
#define GIVE "\033[?7h\033[?25h\033[?1049l"

#define WIDTH_DEFAULT 80u
#define HEIGHT_DEFAULT 24u
/* The largest size that a terminal may report; a frame of it is a few megabytes. */
#define SIDE_MAX 1000u
#define FRAME_BYTES_MAX (16u << 20)
/* How long a terminal that does not read is waited for: then a frame is left out. */
#define WRITE_MS 2000

/* A terminal takes what is written bit by bit; one that is gone takes nothing. */
static void write_all(int fd, dv_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

        if (n > 0)
            bytes = dv_str_slice(bytes, (size_t)n, bytes.n);
        else if (n < 0 && errno != EINTR && (errno != EAGAIN || poll(&poll_fd, 1, WRITE_MS) <= 0))
            return;
    }
}

bool dv_top_term_open(struct dv_top_term *term, int in, int out, struct dv_err *err)
{
    struct termios raw;

    *term = (struct dv_top_term){.in = in, .out = out};
    if (tcgetattr(in, &term->before) < 0)
        return dv_fail_errno(err, errno, "the terminal's settings");
    raw = term->before;
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR | ISTRIP | BRKINT);
    raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG | IEXTEN);
    raw.c_cc[VMIN] = 0; /* what is there, at once */
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(in, TCSAFLUSH, &raw) < 0)
        return dv_fail_errno(err, errno, "the terminal's settings");
    write_all(out, DV_STR(TAKE));
    return true;
}

void dv_top_term_close(struct dv_top_term *term)
{
    write_all(term->out, DV_STR(GIVE));
    (void)tcsetattr(term->in, TCSAFLUSH, &term->before); /* a terminal that is gone has none */
    dv_arena_free(term->arena);
}

void dv_top_term_size(const struct dv_top_term *term, unsigned *width, unsigned *height)
{
    struct winsize size;

    *width = WIDTH_DEFAULT;
    *height = HEIGHT_DEFAULT;
    if (ioctl(term->out, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
        return;
    *width = size.ws_col < SIDE_MAX ? size.ws_col : SIDE_MAX;
    *height = size.ws_row < SIDE_MAX ? size.ws_row : SIDE_MAX;
}

static bool is_shown(const struct dv_top_term *term, const struct dv_top_frame *frame, size_t i)
{
    return term->shown && i < term->shown->n && dv_str_eq(term->shown->lines[i], frame->lines[i]);
}

void dv_top_term_show(struct dv_top_term *term, struct dv_top_frame *frame, struct dv_arena *arena)
{
    struct dv_buf buf;

    dv_buf_init(&buf, FRAME_BYTES_MAX);
    for (size_t i = 0; i < frame->n; i++) {
        if (is_shown(term, frame, i))
            continue;
        dv_buf_printf(&buf, "\033[%zu;1H", i + 1);
        dv_buf_add(&buf, frame->lines[i]);
        dv_buf_add_c(&buf, "\033[K");
    }
    write_all(term->out, dv_buf_str(&buf));
    dv_buf_fini(&buf);
    dv_arena_free(term->arena);
    term->arena = arena;
    term->shown = frame;
}

void dv_top_term_forget(struct dv_top_term *term)
{
    dv_arena_free(term->arena);
    term->arena = NULL;
    term->shown = NULL;
    write_all(term->out, DV_STR("\033[2J"));
}
