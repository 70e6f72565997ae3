#include "cli/args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

typedef struct given {
  const sn_option *option;
  const char *value; /* NULL for a switch */
} given;

struct sn_args {
  const sn_option *options;
  given *given; /* in the order of the command line; the texts stay argv's */
  int64_t n_given;
  const char **positionals;
  int64_t n_positionals;
  bool help;
};

static const sn_option *find_option(const sn_option *options, const char *name, size_t n) {
  for (const sn_option *o = options; o->name != NULL; o++) {
    if (strlen(o->name) == n && strncmp(o->name, name, n) == 0) return o;
  }
  return NULL;
}

static sn_status unknown_option(const sn_option *options, const char *argument, size_t n_name, sn_error *err) {
  const char *names[64];
  int64_t n = 0;
  for (const sn_option *o = options; o->name != NULL && n < 63; o++) names[n++] = o->name;
  names[n++] = "help";
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)n_name, argument + 2);
  const char *near = sn_nearest_name(name, names, n);
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, name, "unknown option --%s%s%s%s; --help lists the options", name,
                    near ? ", did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* argv[*i] is "--name" or "--name=value"; moves *i past a value that stands in the next argument. */
static sn_status take_option(sn_args *args, int argc, char **argv, int *i, sn_error *err) {
  const char *argument = argv[*i], *equals = strchr(argument, '=');
  size_t n_name = equals != NULL ? (size_t)(equals - argument) - 2 : strlen(argument) - 2;
  if (n_name == 4 && strncmp(argument + 2, "help", 4) == 0) {
    if (equals != NULL) return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "help", "--help takes no value");
    args->help = true;
    return SN_OK;
  }
  const sn_option *option = find_option(args->options, argument + 2, n_name);
  if (option == NULL) return unknown_option(args->options, argument, n_name, err);
  const char *value = equals != NULL ? equals + 1 : NULL;
  if (option->value == NULL && value != NULL) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, option->name, "--%s is a switch and takes no value, found \"%s\"",
                      option->name, value);
  }
  if (option->value != NULL && value == NULL) {
    /* An option's name is not taken for a value; a negative number is. */
    if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0) {
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, option->name,
                        "--%s needs a value: --%s %s (or --%s=%s if it begins with --)", option->name, option->name,
                        option->value, option->name, option->value);
    }
    value = argv[++*i];
  }
  if (!option->repeated && sn_args_has(args, option->name)) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, option->name, "--%s is given twice", option->name);
  }
  args->given[args->n_given++] = (given){option, value};
  return SN_OK;
}

static sn_status check_positionals(const sn_args *args, const char *positional, int64_t least, int64_t most,
                                   sn_error *err) {
  const char *what = positional != NULL && positional[0] != '\0' ? positional : "no argument";
  if (args->n_positionals < least) {
    return sn_fail(err, SN_E_ARGUMENT, "%s: expected at least %lld, found %lld", what, (long long)least,
                   (long long)args->n_positionals);
  }
  if (most >= 0 && args->n_positionals > most) {
    return sn_fail(err, SN_E_ARGUMENT, "unexpected argument \"%s\": expected %s (at most %lld)",
                   args->positionals[most], what, (long long)most);
  }
  return SN_OK;
}

/* "-x" is refused, "-" and negative numbers are arguments. */
static bool looks_like_short_option(const char *argument) {
  return argument[0] == '-' && argument[1] != '\0' && strchr("0123456789.", argument[1]) == NULL;
}

sn_status sn_args_parse(const sn_option *options, const char *positional, int64_t least, int64_t most, int argc,
                        char **argv, sn_args **out, sn_error *err) {
  *out = NULL;
  sn_args *args = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&args, 1, (int64_t)sizeof *args, "arguments", err), fail);
  args->options = options;
  SN_TRY_GOTO(sn_alloc(&args->given, argc, (int64_t)sizeof *args->given, "arguments", err), fail);
  SN_TRY_GOTO(sn_alloc(&args->positionals, argc, (int64_t)sizeof *args->positionals, "arguments", err), fail);
  bool only_positionals = false;
  for (int i = 1; i < argc && !args->help; i++) {
    const char *argument = argv[i];
    if (only_positionals || argument[0] != '-') {
      args->positionals[args->n_positionals++] = argument;
    } else if (strcmp(argument, "--") == 0) {
      only_positionals = true;
    } else if (argument[1] == '-') {
      SN_TRY_GOTO(take_option(args, argc, argv, &i, err), fail);
    } else if (strcmp(argument, "-h") == 0) {
      args->help = true;
    } else if (looks_like_short_option(argument)) {
      status =
          sn_fail(err, SN_E_ARGUMENT, "unknown option %s: options are written --name; --help lists them", argument);
      goto fail;
    } else {
      args->positionals[args->n_positionals++] = argument;
    }
  }
  if (!args->help) SN_TRY_GOTO(check_positionals(args, positional, least, most, err), fail);
  *out = args;
  return SN_OK;
fail:
  sn_args_destroy(args);
  return status;
}

void sn_args_destroy(sn_args *args) {
  if (args == NULL) return;
  sn_free(args->given);
  sn_free(args->positionals);
  sn_free(args);
}

bool sn_args_wants_help(const sn_args *args) { return args->help; }

void sn_args_print_help(const sn_option *options, const char *command, const char *positional, const char *summary) {
  bool has_positional = positional != NULL && positional[0] != '\0';
  printf("usage: sonde %s%s%s [options]\n\n%s\n\noptions:\n", command, has_positional ? " " : "",
         has_positional ? positional : "", summary);
  int width = (int)strlen("help");
  for (const sn_option *o = options; o->name != NULL; o++) {
    int n = (int)strlen(o->name) + (o->value != NULL ? 1 + (int)strlen(o->value) : 0);
    if (n > width) width = n;
  }
  for (const sn_option *o = options; o->name != NULL; o++) {
    int n = printf("  --%s%s%s", o->name, o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    printf("%*s%s%s\n", width + 6 - n, "", o->help, o->repeated ? " (may be repeated)" : "");
  }
  printf("  --%-*s  this text\n", width, "help");
}

/* The i-th time (from 0) that the option was given, or NULL. */
static const given *find_given(const sn_args *args, const char *name, int64_t i) {
  const sn_option *option = find_option(args->options, name, strlen(name));
  assert(option != NULL && "an option that is not in the command's table");
  for (int64_t j = 0; j < args->n_given; j++) {
    if (args->given[j].option == option && i-- == 0) return &args->given[j];
  }
  return NULL;
}

bool sn_args_has(const sn_args *args, const char *name) { return find_given(args, name, 0) != NULL; }

int64_t sn_args_count(const sn_args *args, const char *name) {
  int64_t n = 0;
  while (find_given(args, name, n) != NULL) n++;
  return n;
}

const char *sn_args_get(const sn_args *args, const char *name) {
  return sn_args_nth(args, name, sn_args_count(args, name) - 1);
}

const char *sn_args_nth(const sn_args *args, const char *name, int64_t i) {
  const given *g = i < 0 ? NULL : find_given(args, name, i);
  return g == NULL ? NULL : g->value;
}

int64_t sn_args_positionals(const sn_args *args) { return args->n_positionals; }

const char *sn_args_positional(const sn_args *args, int64_t i) {
  return i < 0 || i >= args->n_positionals ? NULL : args->positionals[i];
}

sn_status sn_args_i64(const sn_args *args, const char *name, int64_t fallback, int64_t *value, sn_error *err) {
  const char *text = sn_args_get(args, name);
  *value = fallback;
  if (text == NULL || sn_parse_i64(text, value)) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, name, "--%s expects a whole number, found \"%s\"", name, text);
}

sn_status sn_args_f64(const sn_args *args, const char *name, double fallback, double *value, sn_error *err) {
  const char *text = sn_args_get(args, name);
  *value = fallback;
  if (text == NULL || sn_parse_f64(text, false, value)) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, name, "--%s expects a number, found \"%s\"", name, text);
}
