// The phone: shows the chat, the wait as a ring, and the text as it will be handed on.
const byId = (id) => document.getElementById(id)
const act = (name, body) => fetch(`/do/${name}`, { method: 'POST', body: JSON.stringify(body ?? null) })
/** Of the last state: when the answer is due, on the clock of this page, and how long the wait is. */
let due
let wait = 1

new EventSource('/state').addEventListener('message', ({ data }) => {
  const { chat, handedOn, dueIn, waits, killed } = JSON.parse(data)
  byId('chat').replaceChildren(
    ...chat.map(({ from, text, state }) =>
      Object.assign(document.createElement('li'), { textContent: text, className: `${from} ${state}` }),
    ),
  )
  byId('draft').hidden = handedOn === ''
  byId('handed-on').textContent = handedOn
  due = dueIn === null ? undefined : performance.now() + dueIn
  wait = waits
  byId('note').textContent = killed === 0 ? '' : `${killed} killed, and replaced`
})

function draw() {
  const left = due === undefined ? 0 : Math.max(0, due - performance.now())
  byId('ring').setAttribute('stroke-dashoffset', String(100 - (100 * left) / wait))
  byId('when').textContent = due === undefined ? 'now' : `in ${(left / 1000).toFixed(1)} s, if you write no more`
  requestAnimationFrame(draw)
}
draw()

document.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault()
  const input = byId('text')
  void act('write', input.value)
  input.value = ''
})
byId('retry').addEventListener('click', () => void act('retry'))
byId('kill').addEventListener('click', () => void act('kill'))
