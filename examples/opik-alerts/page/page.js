// The page: counts what happens, shows how long the window is open, and the messages as Slack would show them.
const byId = (id) => document.getElementById(id)
const act = (name, body) => fetch(`/do/${name}`, { method: 'POST', body: JSON.stringify(body ?? null) })
/** When the window ends, on the clock of this page. */
let ends

new EventSource('/state').addEventListener('message', ({ data }) => {
  const { happened, waiting, endsIn, isDebounced, messages, cards } = JSON.parse(data)
  for (const [id, count] of Object.entries({ happened, waiting, messages }))
    byId(id).textContent = count.toLocaleString('en')
  byId('debounce').checked = isDebounced
  ends = endsIn === null ? undefined : performance.now() + endsIn
  byId('cards').replaceChildren(...cards.map(toItem))
})

/** A card is text only, whatever it contains. */
function toItem({ title, lines }) {
  const item = document.createElement('li')
  const heading = Object.assign(document.createElement('strong'), { textContent: title })
  const first = document.createElement('p')
  first.append(heading)
  item.append(first, ...lines.map((line) => Object.assign(document.createElement('p'), { textContent: line })))
  return item
}

function draw() {
  const left = ends === undefined ? 0 : Math.max(0, ends - performance.now())
  byId('window').textContent = ends === undefined ? '' : `The window ends in ${(left / 1000).toFixed(1)} s.`
  requestAnimationFrame(draw)
}
draw()

byId('storm').addEventListener('click', () => void act('storm'))
byId('error').addEventListener('click', () => void act('error'))
byId('debounce').addEventListener('change', ({ target }) => void act('debounce', target.checked))
