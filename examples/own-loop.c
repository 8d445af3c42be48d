/* own-loop.c - a filter with a poll loop of its own: a component is one more descriptor in it. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <component/component.h>
int main(int argc, char **argv)
{
	static const struct component_spec spec = COMPONENT_SPEC(.name = "own-loop", .summary = "Copies input to output.");
	struct component_error err = COMPONENT_ERROR_INIT;
	static char block[65536];
	struct component *c = NULL;
	int status = 1, r = component_new(&spec, &c, &err);

	if (r < 0 || (r = component_use(c, component_profiling(), &err)) < 0 ||
	    (r = component_parse(c, argc, argv, &err)) != 0 || (r = component_start(c, &err)) < 0)
		status = fprintf(r > 0 ? stdout : stderr, "%s\n", r > 0 ? component_flags_output(component_flags(c)) : err.text) < 0;
	struct pollfd fds[] = { { r ? -1 : component_fd(c), POLLIN, 0 }, { STDIN_FILENO, POLLIN, 0 } };
	while (c && !component_finished(c, &status) && r == 0) {
		if (poll(fds, 2, -1) > 0 && fds[1].revents && /* own work first, then the component's */
		    ((r = (int)read(0, block, sizeof(block))) <= 0 || write(1, block, (size_t)r) != r))
			component_stop(c), fds[1].fd = -1;
		r = component_dispatch(c);
	}
	return component_free(c), status;
}
