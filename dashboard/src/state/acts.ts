// Moves the focus to the acts of what was just opened, for people who use no mouse.

const ACTS = '[data-acts] :is(button, a):not(:disabled)'
/** What is opened may still have to be read. */
const WAIT = 2_000

function focusFirstAct(): boolean {
  const first = document.querySelector<HTMLElement>(ACTS)
  first?.focus()
  return first !== null
}

/** `focusActs` moves the focus once the acts are there. */
export function focusActs(): void {
  const observer = new MutationObserver(() => focusFirstAct() && observer.disconnect())
  // The page that was open before is gone after the next rendering.
  requestAnimationFrame(() => {
    if (focusFirstAct()) return
    observer.observe(document.body, { childList: true, subtree: true })
    setTimeout(() => observer.disconnect(), WAIT)
  })
}
