/* The `sonde` command: finds the sub-command in commands.def and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/text.h"

typedef struct command {
  const char *name;
  const char *summary;
  int (*run)(int argc, char **argv);
} command;

static const command COMMANDS[] = {
#define SN_COMMAND(name, summary) {#name, summary, sn_command_##name},
#include "cli/commands.def"
#undef SN_COMMAND
    {NULL, NULL, NULL}};

static void print_usage(FILE *out) {
  fprintf(out, "usage: sonde COMMAND [options]\n\n");
  for (const command *c = COMMANDS; c->name != NULL; c++) fprintf(out, "  %-10s %s\n", c->name, c->summary);
  fprintf(out, "\n`sonde COMMAND --help` lists the options of a command.\n");
}

int main(int argc, char **argv) {
  sn_terminal_prepare();
  if (argc < 2) {
    print_usage(stderr);
    return 2;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_usage(stdout);
    return sn_terminal_finish("--help", 0);
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("sonde %s\n", SONDE_VERSION);
    return sn_terminal_finish("--version", 0);
  }
  const char *names[sizeof COMMANDS / sizeof COMMANDS[0]] = {NULL};
  int64_t n = 0;
  for (const command *c = COMMANDS; c->name != NULL; c++) {
    if (strcmp(argv[1], c->name) == 0) {
      sn_terminal_set_wait_policy(argv);
      return sn_terminal_finish(c->name, c->run(argc - 1, argv + 1));
    }
    names[n++] = c->name;
  }
  const char *near = sn_nearest_name(argv[1], names, n);
  fprintf(stderr, "sonde: no command '%s'%s%s%s; `sonde --help` lists them\n", argv[1], near ? ", did you mean '" : "",
          near ? near : "", near ? "'" : "");
  return 2;
}
