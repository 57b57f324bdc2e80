// Keys. A page adds its own while it is open; letters never reach them while somebody types.
import { useEffect, useRef } from 'preact/hooks'

export type Keys = Readonly<Record<string, () => void>>

const layers: { current: Keys }[] = []
/** After `g`, the next letter opens a page. */
const CHORD_MS = 1_200
let chordUntil = 0

export function useKeys(keys: Keys): void {
  const layer = useRef(keys)
  layer.current = keys
  useEffect(() => {
    layers.push(layer)
    return () => {
      layers.splice(layers.indexOf(layer), 1)
    }
  }, [])
}

export function startKeyboard(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    const name = event.key === ' ' ? 'space' : event.key
    if (isTyping(event.target) && name !== 'Escape') return
    // A focused button or link keeps its own keys.
    const own =
      name === 'Enter' ? 'a, button, summary' : name === 'space' ? 'button, summary, [type=checkbox]' : undefined
    if (own !== undefined && event.target instanceof Element && event.target.closest(own) !== null) return
    const isChord = performance.now() < chordUntil
    chordUntil = 0
    if (!isChord && name === 'g') {
      chordUntil = performance.now() + CHORD_MS
      return
    }
    const wanted = isChord ? `g ${name}` : name
    const layer = layers.findLast(({ current }) => Object.hasOwn(current, wanted))
    if (layer === undefined) return
    event.preventDefault()
    layer.current[wanted]?.()
  })
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName)
}
