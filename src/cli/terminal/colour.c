/* colour.c - what a terminal shows in colour: headers, and words that say how something is. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"

#define GOOD "\033[32m"
#define WAITING "\033[33m"

/* A cell is one of these as a whole: names of objects are nobody's business. */
static const struct {
    dv_str word;
    const char *colour;
} words[] = {
    {DV_STR_INIT("healthy"),            GOOD             },
    {DV_STR_INIT("there"),              GOOD             },
    {DV_STR_INIT("registered"),         GOOD             },
    {DV_STR_INIT("admitted"),           GOOD             },
    {DV_STR_INIT("running"),            GOOD             },
    {DV_STR_INIT("prepared"),           GOOD             },
    {DV_STR_INIT("Ready"),              GOOD             },
    {DV_STR_INIT("Running"),            GOOD             },
    {DV_STR_INIT("Active"),             GOOD             },
    {DV_STR_INIT("allocated,reserved"), GOOD             },
    {DV_STR_INIT("waiting"),            WAITING          },
    {DV_STR_INIT("pending"),            WAITING          },
    {DV_STR_INIT("Pending"),            WAITING          },
    {DV_STR_INIT("Terminating"),        WAITING          },
    {DV_STR_INIT("connecting"),         WAITING          },
    {DV_STR_INIT("registering"),        WAITING          },
    {DV_STR_INIT("admitting"),          WAITING          },
    {DV_STR_INIT("starting"),           WAITING          },
    {DV_STR_INIT("pulling"),            WAITING          },
    {DV_STR_INIT("ending"),             WAITING          },
    {DV_STR_INIT("preparing"),          WAITING          },
    {DV_STR_INIT("unpreparing"),        WAITING          },
    {DV_STR_INIT("blocked"),            WAITING          },
    {DV_STR_INIT("unhealthy"),          DV_COLOUR_TROUBLE},
    {DV_STR_INIT("failing"),            DV_COLOUR_TROUBLE},
    {DV_STR_INIT("Failed"),             DV_COLOUR_TROUBLE},
    {DV_STR_INIT("NotReady"),           DV_COLOUR_TROUBLE},
    {DV_STR_INIT("gone"),               DV_COLOUR_TROUBLE},
    {DV_STR_INIT("tainted"),            DV_COLOUR_TROUBLE},
    {DV_STR_INIT("held, gone"),         DV_COLOUR_TROUBLE},
    {DV_STR_INIT("held, unhealthy"),    DV_COLOUR_TROUBLE},
    {DV_STR_INIT("held, tainted"),      DV_COLOUR_TROUBLE},
    {DV_STR_INIT("removed"),            DV_COLOUR_TROUBLE},
};

bool dv_cli_may_colour(bool is_terminal, const char *no_color, const char *term)
{
    if (!is_terminal || (no_color && no_color[0]))
        return false;
    return term && term[0] && strcmp(term, "dumb") != 0;
}

bool dv_cli_has_colours(int fd)
{
    return dv_cli_may_colour(isatty(fd) == 1, getenv("NO_COLOR"), getenv("TERM"));
}

const char *dv_cli_colour_of(const char *cell)
{
    for (size_t i = 0; i < DV_COUNT(words); i++)
        if (dv_str_eq(words[i].word, dv_str_from_c(cell)))
            return words[i].colour;
    return "";
}
