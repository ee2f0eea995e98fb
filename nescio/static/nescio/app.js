// What the pages do beyond HTMX: keys, citations, a voice for failures.
// Everything works without this file too, by plain forms and links.
"use strict";

(() => {
  const questionBox = () => document.getElementById("question");
  const asks = (element) => element === questionBox() ||
    (element instanceof Element && element.matches("[data-asks]"));

  const isTyping = (element) =>
    element instanceof HTMLElement &&
    (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

  document.addEventListener("keydown", (event) => {
    const box = questionBox();
    const target = { "/": box, f: document.getElementById("follow-up") }[event.key];
    if (target && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      target.focus();
      target.select();
    }
    // Without it the keys above would be typed into the box that has just asked.
    if (event.key === "Escape" && asks(event.target) && !event.isComposing) {
      event.target.blur();
    }
    // A composing input method uses Enter to choose a word.
    if (event.key === "Enter" && asks(event.target) && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });

  // Who asks one follow-up goes on with the next: its box is a new one each time.
  let isFollowing = false;
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt.matches("form")) {
      isFollowing = event.detail.elt.id === "follow-up-form";
    }
  });
  document.addEventListener("htmx:load", (event) => {
    const next = event.detail.elt.querySelector("#follow-up");
    if (isFollowing && next && document.activeElement === document.body) {
      next.focus({ preventScroll: true });
    }
  });

  // A slider beside a number; the number is what is sent, and empty where nothing was moved.
  document.addEventListener("input", (event) => {
    const moved = event.target.dataset.moves;
    if (moved) {
      document.getElementById(moved).value = event.target.value;
    } else {
      const slider = document.querySelector(`[data-moves="${event.target.id}"]`);
      if (slider) {
        slider.value = event.target.value || event.target.placeholder;
      }
    }
  });

  // The browser's own words for an empty field say nothing of a question.
  document.addEventListener("invalid", (event) => {
    if (asks(event.target) && event.target.validity.valueMissing) {
      event.target.setCustomValidity("Type a question first.");
    }
  }, true);
  document.addEventListener("input", (event) => {
    if (asks(event.target)) {
      event.target.setCustomValidity("");
    }
  });

  const choose = (card) => {
    for (const other of document.querySelectorAll(".card.is-chosen")) {
      other.classList.remove("is-chosen");
    }
    card.classList.add("is-chosen");
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("click", (event) => {
    const citation = event.target.closest("a.citation");
    if (citation) {
      const card = document.getElementById(citation.hash.slice(1));
      if (card) {
        event.preventDefault();
        choose(card);
      }
    }
    if (event.target.closest("[data-dismiss]")) {
      document.getElementById("failure").hidden = true;
    }
  });

  const announce = (text) => {
    const region = document.getElementById("announcement");
    if (region) {
      region.textContent = text;
    }
  };

  const fail = (text) => {
    const toast = document.getElementById("failure");
    toast.querySelector("[data-text]").textContent = text;
    toast.hidden = false;
  };

  // What only works with scripts is hidden until they run.
  const reveal = (root) => {
    for (const element of root.querySelectorAll("[data-scripted]")) {
      element.hidden = false;
    }
  };
  document.addEventListener("htmx:load", (event) => reveal(event.detail.elt));
  document.addEventListener("DOMContentLoaded", () => reveal(document));

  const parsed = (block) => {
    const lines = block.split("\n");
    const values = (name) => lines
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2));
    return new MessageEvent(values("event")[0] || "message", { data: values("data").join("\n") });
  };

  // A question is decided by a POST, which the browser's own EventSource does not send.
  htmx.createEventSource = (address) => {
    const source = new EventTarget();
    const stop = new AbortController();
    source.readyState = EventSource.CONNECTING;
    source.close = () => {
      source.readyState = EventSource.CLOSED;
      stop.abort();
    };
    const read = async () => {
      const response = await fetch(address, {
        method: "POST",
        signal: stop.signal,
        headers: { "X-CSRFToken": document.querySelector("[name=csrfmiddlewaretoken]").value },
      });
      if (!response.ok) {
        throw new Error(`The stream answered ${response.status}.`);
      }
      source.readyState = EventSource.OPEN;
      source.onopen();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (let got = await reader.read(); !got.done; got = await reader.read()) {
        const blocks = (text + got.value).split("\n\n");
        text = blocks.pop();
        blocks.forEach((block) => source.dispatchEvent(parsed(block)));
      }
    };
    const end = (error) => {
      if (source.readyState !== EventSource.CLOSED) {
        source.readyState = EventSource.CLOSED;
        source.onerror(error);
      }
    };
    read().then(end, end);
    return source;
  };

  // What asks by itself, now and then, neither complains nor clears a complaint.
  const isQuiet = (event) => event.detail.elt.matches("[data-quiet]");
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isQuiet(event)) {
      document.getElementById("failure").hidden = true;
    }
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (!isQuiet(event)) {
      fail("The server could not be reached. Your question is still in the box; try again.");
    }
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (isQuiet(event)) {
      return;
    }
    const status = event.detail.xhr.status;
    fail({
      403: "This page is too old or you may not do this. Reload the page and try again.",
      404: "This is gone, or you may not see it.",
      429: "Too many questions in a short time. Wait a moment and try again.",
      503: "A part of the system is down. Your question is kept; try again in a moment.",
    }[status] || `The server could not do this (error ${status}). Try again; if it keeps happening, tell your administrator.`);
  });
})();
