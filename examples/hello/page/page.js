// Shows each mail as it is sent, and knocks.
const list = document.querySelector('ol')

new EventSource('/state').addEventListener('message', ({ data }) => {
  const mails = JSON.parse(data).mails.map((mail) => JSON.parse(mail).text)
  list.replaceChildren(...mails.map((text) => Object.assign(document.createElement('li'), { textContent: text })))
})
document.querySelector('button').addEventListener('click', () => {
  void fetch('/do/knock', { method: 'POST', body: '"you"' })
})
