/* A question box for pages of other sites: docs/how-to/put-the-widget-on-a-page.md.
   Everything is text nodes in a closed shadow root with a constructed stylesheet, so that
   it runs under a strict Content-Security-Policy and no answer ever becomes markup. */
(() => {
  "use strict";
  const tag = document.currentScript;
  const options = tag.dataset;
  const base = new URL(`/widget/${encodeURIComponent(options.widget)}/`, tag.src).href;
  const MAX_SHOWN = 3;

  const STYLE = `
    :host { all: initial; display: block; color-scheme: inherit; font: inherit; --text: #1b2230; --muted: #545e70; --surface: #fff; --sunken: #f3f5f8; --line: #d6dae2; --strong: #8a93a3; --accent: #0b6663; --on-accent: #fff; --soft: #e0f2ef; --refusal: #43509a; --refusal-soft: #eceef9; --warning: #7c4a03; --warning-soft: #fdf1da; --danger: #a1261d; }
    @supports (color: light-dark(#000, #fff)) { :host { --text: light-dark(#1b2230, #e7ebf2); --muted: light-dark(#545e70, #a9b4c5); --surface: light-dark(#fff, #1a202a); --sunken: light-dark(#f3f5f8, #232b37); --line: light-dark(#d6dae2, #343e4d); --strong: light-dark(#8a93a3, #7a879b); --accent: light-dark(#0b6663, #5fd0c3); --on-accent: light-dark(#fff, #06201e); --soft: light-dark(#e0f2ef, #16352f); --refusal: light-dark(#43509a, #b3befa); --refusal-soft: light-dark(#eceef9, #242b47); --warning: light-dark(#7c4a03, #f4c56e); --warning-soft: light-dark(#fdf1da, #38290d); --danger: light-dark(#a1261d, #ff9d94); } }
    :host([hidden]) { display: none; }
    * { box-sizing: border-box; margin: 0; }
    section { container-type: inline-size; background: var(--surface); color: var(--text); border: 1px solid var(--line); border-radius: 12px; padding: 1rem; line-height: 1.5; overflow-wrap: anywhere; }
    label, .head { display: block; font-weight: 600; margin-bottom: 0.4rem; }
    .row { display: flex; gap: 0.5rem; align-items: flex-start; }
    textarea { flex: 1; min-width: 0; min-height: 2.75rem; max-height: 12rem; field-sizing: content; resize: none; }
    textarea, button { font: inherit; color: inherit; background: var(--surface); border: 1px solid var(--strong); border-radius: 9px; padding: 0.55rem 0.75rem; }
    textarea::placeholder { color: var(--muted); opacity: 1; }
    button { font-weight: 600; min-height: 2.75rem; cursor: pointer; }
    button:hover { background: var(--sunken); }
    .ask { background: var(--accent); border-color: var(--accent); color: var(--on-accent); padding-inline: 1.1rem; }
    .ask:hover { background: var(--accent); filter: brightness(0.9); }
    .ask[aria-disabled="true"] { opacity: 0.65; cursor: progress; }
    button[aria-pressed="true"] { background: var(--soft); border-color: var(--accent); color: var(--accent); }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
    .status { color: var(--muted); margin-top: 0.6rem; }
    .status:empty { display: none; }
    .quiet { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    .error { color: var(--danger); margin-top: 0.6rem; }
    .error:empty { display: none; }
    article { margin-top: 1rem; border-top: 1px solid var(--line); padding-top: 1rem; display: grid; gap: 0.75rem; }
    .asked { color: var(--muted); font-size: 0.9em; }
    .badge { display: inline-block; font-size: 0.8em; font-weight: 600; border-radius: 999px; padding: 0.1rem 0.6rem; background: var(--soft); color: var(--accent); }
    .refused .kind { background: var(--refusal-soft); color: var(--refusal); }
    .badge.doubt { background: var(--warning-soft); color: var(--warning); }
    .text { font-size: 1.08em; }
    .said { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.4rem; }
    .said :is(p, li, th, td) { white-space: pre-line; }
    .said ul, .steps { padding-left: 1.3rem; }
    .steps { list-style: decimal; padding-left: 1.8rem; }
    .scroll { overflow-x: auto; }
    table { border-collapse: collapse; font-size: 0.95em; overflow-wrap: break-word; }
    th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.8rem 0.25rem 0; border-bottom: 1px solid var(--line); min-width: 4.5rem; }
    th { color: var(--muted); font-weight: 600; vertical-align: bottom; }
    ol:not(.steps) { list-style: none; padding: 0; display: grid; gap: 0.5rem; }
    ol:not(.steps) > li { background: var(--sunken); border-radius: 9px; padding: 0.6rem 0.75rem; display: grid; gap: 0.25rem; font-size: 0.93em; }
    li > p:first-child { display: flex; flex-wrap: wrap; gap: 0.25rem 0.5rem; align-items: center; }
    .muted { color: var(--muted); }
    summary { cursor: pointer; font-weight: 600; padding-block: 0.25rem; }
    details ol { margin-top: 0.4rem; }
    .vote { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
    .vote .head { margin: 0; }
    .pair { display: flex; gap: 0.5rem; }
    @container (max-width: 24rem) { form .row { flex-direction: column; align-items: stretch; } }
  `;

  /** Make an element; strings among the children become text and nothing else. */
  function make(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  }

  // --- what is sent ---------------------------------------------------------------

  let token = null;

  async function send(method, path, body, headers = {}) {
    const response = await fetch(base + path, {
      method,
      mode: "cors",
      credentials: "omit",
      cache: "no-store",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    }).catch(() => {
      throw new Error("The knowledge base can’t be reached. Try again in a moment.");
    });
    const said = await response.json().catch(() => null);
    if (!response.ok) {
      const failed = new Error(said?.error?.message ?? `It answered ${response.status}. Try again.`);
      failed.status = response.status;
      throw failed;
    }
    return said;
  }

  /** Fetch what names the page's reader, from the page's own site alone. */
  async function fetchClaim() {
    if (!options.claim) return "";
    const address = new URL(options.claim, location.href);
    if (address.origin !== location.origin) throw new Error("data-claim must be an address of this site.");
    const response = await fetch(address, { credentials: "same-origin", cache: "no-store" });
    if (!response.ok) throw new Error("This page could not say who you are. Sign in again, then reload it.");
    return (await response.text()).trim();
  }

  async function renew() {
    const made = await send("POST", "token", { claim: await fetchClaim() });
    token = { value: made.token, ends: Date.now() + (made.expires_in - 30) * 1000 };
  }

  async function call(method, path, body) {
    if (!token || Date.now() > token.ends) await renew();
    const authorized = () => send(method, path, body, { Authorization: `Bearer ${token.value}` });
    try {
      return await authorized();
    } catch (error) {
      if (error.status !== 401) throw error;
      await renew(); // it expired on the way, or the secret was replaced
      return authorized();
    }
  }

  // --- what is shown --------------------------------------------------------------

  /** Make the paragraphs, lists and tables of a text, of which nothing is markup. */
  function said(blocks, attributes) {
    const items = ({ rows, below = [] }) => rows.map(([text], n) => make("li", {}, text, ...(below[n] || []).map(element)));
    const element = (block) => kinds[block.kind](block);
    const row = (cells, name, attributes = {}) => make("tr", {}, ...cells.map((text) => make(name, attributes, text)));
    const kinds = {
      text: ({ rows }) => make("p", {}, rows[0][0]),
      bullets: (block) => make("ul", {}, ...items(block)),
      numbers: (block) => make("ol", { class: "steps", start: block.first }, ...items(block)),
      table: ({ rows, has_headings }) =>
        make(
          "div",
          { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
          make(
            "table",
            {},
            ...rows.slice(0, has_headings ? 1 : 0).map((head) => make("thead", {}, row(head, "th", { scope: "col" }))),
            make("tbody", {}, ...rows.slice(has_headings ? 1 : 0).map((cells) => row(cells, "td"))),
          ),
        ),
    };
    return make("div", attributes, ...blocks.map(element));
  }

  function piece(shown, language, words, chooser = () => null) {
    const place = [shown.document, shown.section].filter((part, n, all) => part && part !== all[n - 1]);
    const until = shown.valid_until && new Date(shown.valid_until).toLocaleDateString();
    return make(
      "li",
      {},
      make(
        "p",
        {},
        make("strong", {}, place.join(" › ") || words.entry),
        make("span", { class: shown.verified ? "badge" : "badge doubt" }, shown.verified ? `✓ ${words.verified}` : words.not_verified),
      ),
      shown.question ? make("p", { lang: language, class: "muted" }, shown.question) : null,
      shown.blocks ? said(shown.blocks, { class: "said", lang: language }) : make("p", { lang: language }, shown.text || shown.quote),
      until ? make("p", { class: "muted" }, `${words.valid_until} ${until}`) : null,
      chooser(shown),
    );
  }

  /** Return what makes the buttons by which a reader says something of an answer, or takes it back.

      The thumb and the entry that is meant are one vote: what the server keeps of it is shown by all. */
  function toggles({ id }, fail) {
    const made = [];
    let kept = { rating: null, entry: null };
    return (path, name, value, label, state, [done, undone]) => {
      const button = make("button", { type: "button", "aria-pressed": "false" }, label);
      made.push({ button, name, value, state });
      button.addEventListener("click", async () => {
        try {
          kept = await call("PUT", `answers/${id}/${path}`, { [name]: kept[name] === value ? null : value });
          for (const each of made) {
            each.button.setAttribute("aria-pressed", String(kept[each.name] === each.value));
            each.state.textContent = "";
          }
          state.textContent = kept[name] ? done : undone;
        } catch (error) {
          fail(error);
        }
      });
      return button;
    };
  }

  function meanings(answer, toggle) {
    const { asks_back, name_it, this_is_meant, choice_kept, choice_removed } = answer.words;
    const state = make("p", { class: "muted", role: "status" });
    const chooser = ({ entry }) => toggle("choice", "entry", entry, this_is_meant, state, [choice_kept, choice_removed]);
    const shown = pieces(`${asks_back} ${name_it}`, answer.meanings, answer, chooser);
    if (shown) shown.append(state);
    return shown;
  }

  function pieces(title, shown, { entry_language: language, words }, chooser) {
    if (!shown.length) return null;
    const list = (rows) => make("ol", {}, ...rows.map((row) => piece(row, language, words, chooser)));
    const rest = shown.slice(MAX_SHOWN);
    return make(
      "div",
      { role: "group", "aria-label": title },
      make("p", { class: "head" }, title),
      list(shown.slice(0, MAX_SHOWN)),
      rest.length ? make("details", {}, make("summary", {}, `${words.more} (${rest.length})`), list(rest)) : null,
    );
  }

  function disagreement(sides, { entry_language: language, words }) {
    return make(
      "div",
      { role: "note" },
      make("p", { class: "head" }, words.sources_disagree),
      make("ol", {}, ...sides.map((side) => piece({ ...side, text: side.quote }, language, words))),
    );
  }

  function vote(answer, toggle) {
    const { words } = answer;
    const state = make("span", { class: "muted", role: "status" });
    const buttons = Object.entries({ up: words.yes, down: words.no }).map(([value, label]) =>
      toggle("vote", "rating", value, label, state, [words.thanks, words.taken_back]),
    );
    const asks = answer.answered ? "Did this help?" : words.was_it_right;
    return make("div", { class: "vote", role: "group", "aria-label": asks }, make("span", { class: "head" }, asks), make("span", { class: "pair" }, ...buttons), state);
  }

  function result(answer, fail) {
    const { language, words } = answer;
    const toggle = toggles(answer, fail);
    const kind = !answer.answered ? words.not_answered : answer.unsourced ? "Answer without a source" : "Answer";
    return make(
      "article",
      { class: answer.answered ? "answered" : "refused", "aria-label": kind, lang: words.language },
      make("p", { class: "asked" }, answer.question),
      make("p", {}, make("span", { class: answer.unsourced ? "badge doubt" : "badge kind" }, kind), answer.title ? ` ${answer.title}` : ""),
      said(answer.blocks, { class: "said text", lang: language }),
      answer.unsourced ? make("p", { class: "muted" }, "A language model wrote it from its own knowledge. Check it before you rely on it.") : null,
      ...answer.disagreements.map((sides) => disagreement(sides, answer)),
      pieces("Evidence", answer.citations, answer),
      answer.answered ? null : meanings(answer, toggle),
      answer.answered ? null : pieces(words.related_only, answer.near_misses, answer),
      vote(answer, toggle),
    );
  }

  function start() {
    const host = document.createElement("nescio-widget");
    const root = host.attachShadow({ mode: "closed" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];

    const words = options.label || "Ask the knowledge base";
    const field = make("textarea", { id: "question", rows: "1", maxlength: "2000", required: "", enterkeyhint: "send", autocomplete: "off" });
    const button = make("button", { class: "ask" }, "Ask");
    const form = make("form", {}, make("label", { for: "question" }, words), make("div", { class: "row" }, field, button));
    const status = make("p", { class: "status", role: "status" });
    const error = make("p", { class: "error", role: "alert" });
    const place = make("div");
    const fail = (problem) => { error.textContent = problem.message; };
    let isBusy = false;

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (isBusy || !field.value.trim()) return;
      isBusy = true;
      button.setAttribute("aria-disabled", "true");
      error.textContent = "";
      place.replaceChildren(); // no answer stands below another question
      status.className = "status";
      status.lang = "en";
      status.textContent = "Searching the knowledge base…";
      try {
        const answer = await call("POST", "ask", { question: field.value });
        place.replaceChildren(result(answer, fail));
        field.value = "";
        status.className = "status quiet";
        status.textContent = `${answer.answered ? "Answer" : answer.words.not_answered}: ${answer.text}`;
        status.lang = answer.words.language;
      } catch (problem) {
        status.textContent = "";
        fail(problem);
      }
      button.removeAttribute("aria-disabled");
      isBusy = false;
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });

    root.append(make("section", { "aria-label": words }, form, status, error, place));
    const target = options.target && document.querySelector(options.target);
    if (target) target.append(host);
    else if (document.head.contains(tag)) document.body.append(host);
    else tag.after(host);
  }

  if (!options.widget) console.error("The Nescio widget: its script tag has no data-widget.");
  else start();
})();
