// Gives the page life: search, and forms that send what they show. Nothing is kept, and nothing is
// sent anywhere but to the server that the page came from, whatever its public address is.
import { languages } from './samples.js'

const base = new URL('../v1', location.href).href
const entries = [...document.querySelectorAll('.entry')]
const forms = [...document.querySelectorAll('form.trial')]

// --- Addresses: what a link points to, or stands in, is unfolded.

function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  for (let at = target; at; at = at.parentElement) if (at.localName === 'details') at.open = true
  target?.scrollIntoView()
}
addEventListener('hashchange', unfold)
for (const link of document.querySelectorAll('a[href^="#"]')) {
  // The address may be there already, with its entry folded up or hidden by the search.
  link.addEventListener('click', () => {
    search.value = ''
    find()
    if (link.hash === location.hash) unfold()
  })
}

// --- Search: entries that have all the words.

const search = document.getElementById('search')
const found = document.getElementById('found')
const texts = new Map(
  entries.map((entry) => {
    const parts = [entry.querySelector('summary'), entry.querySelector('.reference, .inside')]
    return [entry, parts.map((part) => part.textContent.toLowerCase()).join(' ')]
  }),
)

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  for (const entry of entries)
    entry.hidden = !words.every((word) => texts.get(entry).includes(word))
  for (const section of document.querySelectorAll('main > section')) {
    section.hidden = !section.querySelector('.entry:not([hidden])')
  }
  const left = entries.filter((entry) => !entry.hidden).length
  found.textContent = words.length > 0 ? `${left} of ${entries.length} found` : ''
}
search.addEventListener('input', find)

// --- Forms.

/** The field of a form for the key, or for the body. */
const fieldOf = (form, place) => form.querySelector(`[data-in=${place}]`)

/** The request that a form describes; a parameter that is left empty is not sent. */
function callOf(form) {
  const filled = [...form.querySelectorAll('[data-in]')].filter(({ value }) => value !== '')
  const at = (place) => filled.filter((field) => field.dataset.in === place)
  let path = form.dataset.path
  for (const { name, value } of at('path')) {
    path = path.replace(`{${name}}`, encodeURIComponent(value))
  }
  const query = new URLSearchParams(at('query').map(({ name, value }) => [name, value])).toString()
  const headers = at('header').map(({ name, value }) => [name, value])
  const body = fieldOf(form, 'body')?.value
  if (body !== undefined) headers.push(['Content-Type', 'application/json'])
  const url = base + path + (query && `?${query}`)
  return { method: form.dataset.method, url, keyed: fieldOf(form, 'key') !== null, headers, body }
}

/** JSON on several lines, each number with the digits it came with; anything else as it came. */
function pretty(text) {
  if (!JSON.rawJSON) return text
  try {
    const exact = (_key, value, { source }) =>
      typeof value === 'number' ? JSON.rawJSON(source) : value
    return JSON.stringify(JSON.parse(text, exact), null, 2)
  } catch {
    return text
  }
}

/** Forms that wait for their answer. */
const waiting = new Set()

async function send(form) {
  if (waiting.has(form)) return // who clicks twice adds no second animal
  waiting.add(form)
  const { method, url, headers, body } = callOf(form)
  const box = form.querySelector('.answer')
  const [text, names] = box.querySelectorAll('pre')
  const status = box.querySelector('[role=status]')
  const show = (line, kind, content, list) => {
    box.dataset.kind = kind
    text.textContent = content
    names.textContent = list
    text.hidden = content === ''
    box.querySelector('details').hidden = list === ''
    box.hidden = false
    status.textContent = line
  }
  const began = performance.now()
  try {
    const key = fieldOf(form, 'key')?.value
    const all = key ? [['Authorization', `Bearer ${key}`], ...headers] : headers
    const response = await fetch(url, { method, headers: all, body })
    const content = await response.text()
    const duration = Math.round(performance.now() - began)
    const line = `${response.status} ${response.statusText} · ${duration} ms`
    const list = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
    show(line, String(response.status)[0], pretty(content), list)
  } catch (error) {
    show(`There was no answer: ${error.message}`, '5', '', '')
  }
  waiting.delete(form)
}

/** The code samples of a form, with a choice of the language that holds for all forms. */
function addSamples(form, index) {
  const box = form.querySelector('.samples')
  const choice = document.createElement('fieldset')
  const legend = document.createElement('legend')
  legend.textContent = 'Code sample'
  choice.append(legend)
  for (const language of Object.keys(languages)) {
    const label = document.createElement('label')
    const radio = document.createElement('input')
    Object.assign(radio, { type: 'radio', name: `language-${index}`, value: language })
    radio.checked = language === 'curl'
    radio.addEventListener('change', () => choose(language))
    label.append(radio, language)
    choice.append(label)
  }
  const code = document.createElement('pre')
  box.append(choice, code)
  if (fieldOf(form, 'key')) {
    const hint = document.createElement('p')
    hint.className = 'hint'
    hint.textContent = 'It takes your key from the environment variable API_KEY.'
    box.append(hint)
  }
  if (navigator.clipboard) {
    const copy = document.createElement('button')
    copy.type = 'button'
    copy.textContent = 'Copy'
    copy.addEventListener('click', async () => {
      await navigator.clipboard.writeText(code.textContent)
      copy.textContent = 'Copied'
      setTimeout(() => {
        copy.textContent = 'Copy'
      }, 2_000)
    })
    box.append(copy)
  }
}

let language = 'curl'

function choose(chosen) {
  language = chosen
  for (const form of forms) {
    for (const radio of form.querySelectorAll('[type=radio]')) {
      radio.checked = radio.value === chosen
    }
    writeSample(form)
  }
}

function writeSample(form) {
  form.querySelector('.samples pre').textContent = languages[language](callOf(form))
}

for (const [index, form] of forms.entries()) {
  addSamples(form, index)
  writeSample(form)
  form.hidden = false
  form.addEventListener('input', ({ target }) => {
    if (target.dataset.in !== 'key') return writeSample(form)
    for (const field of document.querySelectorAll('[data-in=key]')) field.value = target.value
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send(form)
  })
}

unfold()
