// Shows the counters of the load, and starts bursts and kills.
const byId = (id) => document.getElementById(id)
const number = (n) => n.toLocaleString('en')

new EventSource('/state').addEventListener('message', ({ data }) => {
  const {
    sent,
    pushing,
    metrics,
    wanted,
    p99,
    malformed,
    deadLetters,
    lanes,
    fetched,
    activities,
    exceeded,
    killed,
    verdict,
  } = JSON.parse(data)
  byId('sent').textContent = number(sent)
  byId('metrics').textContent = `${number(metrics)} of ${number(wanted)}`
  byId('p99').textContent = p99 === null ? '–' : `${number(p99)} ms`
  byId('dead').textContent = `${number(malformed)}, ${number(deadLetters)}`
  byId('lanes').textContent = number(lanes)
  byId('strava').textContent = `${number(fetched)} of ${number(activities)}`
  byId('exceeded').textContent = number(exceeded)
  byId('killed').textContent = number(killed)
  byId('bar').value = wanted === 0 ? 0 : metrics / wanted
  byId('burst').disabled = pushing
  byId('verdict').className = verdict.holds === null ? '' : verdict.holds ? 'right' : 'wrong'
  byId('verdict').textContent = verdict.text
})

async function act(name) {
  const response = await fetch(`/do/${name}`, { method: 'POST' })
  byId('note').textContent = response.ok ? '' : await response.text()
}

for (const name of ['burst', 'kill']) byId(name).addEventListener('click', () => void act(name))
