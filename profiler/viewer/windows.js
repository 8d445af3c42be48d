/*
 * windows.js - fetching a profile: how far it is, a button that stops and one that cancels.
 *
 *     const taken = await take(container, "heap?seconds=5", { seconds: 5, what: "Heap" }, signal);
 *
 * A request that lasts carries `window=ID`.  To stop it is to post that id to `stop`: the answer to the
 * request is then the shorter profile.  To cancel is to hang up, by which the daemon frees the window.
 * What a stranger would get wrong: the time of a window is not all; names are looked up after it.
 *
 * Tests: tests/viewer/.
 */
const LOOK_MS = 200;

function window_id() {
	return Array.from(crypto.getRandomValues(new Uint8Array(10)), (n) => (n % 36).toString(36)).join("");
}

function with_parameter(path, parameter) {
	return path + (path.includes("?") ? "&" : "?") + parameter;
}

/* Shows elapsed time; draw(text) says what comes after it. */
function progress_of(options, act) {
	const bar = element("progress", { max: options.seconds || 1, "aria-label": options.what });
	const text = element("span", { class: "taking-text" });
	const stop = options.seconds ? button("Stop and show", act.stop, { "data-do": "stop", class: "primary" }) : null;
	const cancel = button("Cancel", act.cancel, { "data-do": "cancel" });
	const began = performance.now();
	const shown = element("div", { class: "taking", role: "group", "aria-label": options.what },
		element("div", { class: "taking-line" }, bar, text), element("div", { class: "tools" }, stop, cancel));

	function step() {
		const s = (performance.now() - began) / 1000, over = !options.seconds || s >= options.seconds || act.stopped;

		if (stop)
			stop.hidden = over;
		if (over) {
			bar.removeAttribute("value");
			text.textContent = act.bytes ? `${count_text(act.bytes, "bytes")} received` :
				options.seconds ? "Looking up names" : "Collecting";
		} else {
			bar.value = s;
			text.textContent = `${Math.floor(s)} of ${options.seconds} s`;
		}
	}
	step();
	return { shown, timer: setInterval(step, LOOK_MS) };
}

/* All of it, counted on the way. */
async function read_all(answer, act) {
	const reader = answer.body.getReader(), parts = [];

	for (;;) {
		const { done, value } = await reader.read();
		if (done)
			break;
		parts.push(value);
		act.bytes += value.length;
	}
	const bytes = new Uint8Array(act.bytes);
	let at = 0;
	for (const part of parts) {
		bytes.set(part, at);
		at += part.length;
	}
	return bytes;
}

/* Resolves to { bytes, seconds } or, cancelled, to null.  signal: the view that it is for was left. */
async function take(container, path, options, signal) {
	const id = window_id(), abort = new AbortController(), began = performance.now();
	const act = {
		bytes: 0, stopped: false, ended: false, cancel: () => abort.abort(),
		stop: () => {
			act.stopped = true;
			wrong.replaceChildren();
			ask(`stop?window=${id}`, { method: "POST", signal: abort.signal }).catch((error) => {
				if (act.ended || abort.signal.aborted)
					return;
				if (error.status === 404) { /* it has not begun: it stands in a queue */
					setTimeout(act.stop, LOOK_MS);
					return;
				}
				act.stopped = false;
				wrong.replaceChildren(failure(error));
			});
		},
	};
	const wrong = element("div", { class: "place" });
	const progress = progress_of(options, act);

	if (signal)
		signal.addEventListener("abort", act.cancel);
	progress.shown.append(wrong);
	container.replaceChildren(progress.shown);
	try {
		const answer = await ask(options.seconds ? with_parameter(path, `window=${id}`) : path, { signal: abort.signal });
		const bytes = await read_all(answer, act);
		return { bytes, seconds: act.stopped ? (performance.now() - began) / 1000 : options.seconds };
	} catch (error) {
		if (abort.signal.aborted)
			return null;
		throw error;
	} finally {
		act.ended = true;
		clearInterval(progress.timer);
		progress.shown.remove();
		if (signal)
			signal.removeEventListener("abort", act.cancel);
	}
}

/* A sentence where something was to be, and what to do about it. */
function failure(error, again) {
	say(error.message);
	return element("div", { class: "notice bad", role: "alert" }, element("p", null, error.message),
		again ? button("Try again", again) : null);
}
