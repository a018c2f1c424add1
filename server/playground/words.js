// A text whose words are highlighted as they are spoken. Positions are counted in code points.

export class Words {
  #element;
  #tail = document.createTextNode("");
  #rest = []; // the code points of the tail: those after the last caption
  #at = 0; // the position of the first of them
  #marks = [];
  #lit = 0;

  constructor(element) {
    this.#element = element;
    element.replaceChildren(this.#tail);
  }

  append(text) {
    this.#rest.push(...text);
    this.#tail.data += text;
  }

  /** Adds captions. A word includes the punctuation that follows it. */
  mark(pieces) {
    for (const word of pieces.flatMap((piece) => piece.words)) {
      if (word.start < this.#at) continue;
      const before = this.#take(word.start - this.#at);
      let text = this.#take(word.end - word.start);
      while (this.#rest.length && this.#rest[0].trim()) text += this.#take(1);
      const span = document.createElement("span");
      span.textContent = text;
      this.#tail.before(before, span);
      this.#marks.push({ span, from: word.start_s, until: word.end_s });
    }
    this.#tail.data = this.#rest.join("");
  }

  #take(count) {
    this.#at += count;
    return this.#rest.splice(0, count).join("");
  }

  /** Highlights the word that is spoken at this time of the audio. */
  light(seconds) {
    while (this.#lit < this.#marks.length && this.#marks[this.#lit].from <= seconds) {
      this.#marks[this.#lit].span.className = "said";
      this.#lit += 1;
    }
    const current = this.#marks[this.#lit - 1];
    if (!current) return;
    const now = current.until > seconds;
    if (now && !current.span.classList.contains("now")) reveal(current.span);
    current.span.classList.toggle("now", now);
    this.#marks[this.#lit - 2]?.span.classList.remove("now");
  }

  /** Marks every word as spoken. */
  finish() {
    for (const { span } of this.#marks) span.className = "said";
  }
}

/** Scrolls the word's box to show it, and nothing around the box. */
function reveal(span) {
  const box = span.closest(".scrolls");
  const [outer, inner] = [box.getBoundingClientRect(), span.getBoundingClientRect()];
  if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + inner.height;
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + inner.height;
}
