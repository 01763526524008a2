// Sends the requests that the converter of a tool makes of openapi.json, as docs/clients.md says: what is
// disabled is left out, and the bodies are entered.
import { readFileSync } from 'node:fs'

const [tool, baseUrl, key] = process.argv.slice(2)
const data = readFileSync('openapi.json', 'utf8')

/** Each returns its requests: method, path, query and headers. */
const tools = {
  async postman() {
    const { default: converter } = await import('openapi-to-postmanv2')
    const { promise, resolve } = Promise.withResolvers()
    const options = { enableOptionalParameters: false }
    converter.convert({ type: 'string', data }, options, (_error, { output }) => resolve(output[0]))
    const requestsOf = ({ item, request }) => (item ? item.flatMap(requestsOf) : [request])
    return requestsOf((await promise).data).map(({ method, url, header }) => ({
      method,
      path: `/${url.path.join('/')}`,
      query: url.query,
      headers: header,
    }))
  },
  async bruno() {
    const { openApiToBruno } = await import('@usebruno/converters')
    const requestsOf = ({ items, request }) => (items ? items.flatMap(requestsOf) : [request])
    return requestsOf(openApiToBruno(JSON.parse(data))).map(({ method, url, params, headers }) => ({
      method,
      path: url.replace('{{baseUrl}}', ''),
      query: params,
      headers,
    }))
  },
  async insomnia() {
    const { default: importers } = await import('insomnia-importers')
    const { resources } = (await importers.convert(data)).data
    const requests = resources.filter(({ _type }) => _type === 'request')
    return requests.map(({ method, url, parameters, headers }) => ({
      method,
      path: url.replace('{{ base_url }}', ''),
      query: parameters,
      headers,
    }))
  },
}
const requests = await tools[tool]()

const enabled = (pairs) =>
  pairs
    .filter(({ disabled, enabled = !disabled }) => enabled)
    .map(({ key, name = key, value }) => [name, value])

/** Sends the only request of this method to `/pets`. */
async function send(method, body) {
  const [{ path, query, headers }] = requests.filter(
    (request) => request.method === method && request.path === '/pets',
  )
  const address = `${baseUrl}${path}?${new URLSearchParams(enabled(query))}`
  const sent = { ...Object.fromEntries(enabled(headers)), Authorization: `Bearer ${key}` }
  if (body) sent['Content-Type'] = 'application/json' // all three send it with a body
  const response = await fetch(address, { method, headers: sent, body })
  return { status: response.status, body: await response.json() }
}

const answers = []
for (const name of ['Rex', 'Bella'])
  answers.push(await send('POST', JSON.stringify({ name, categoryId: 1 })))
answers.push(await send('GET'))
console.log(JSON.stringify(answers))
