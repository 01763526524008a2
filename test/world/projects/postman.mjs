// Sends the requests of the collection that Postman makes of openapi.json, with the settings and the two
// changes that docs/clients.md names: what is disabled is left out, and the bodies are entered.
import { readFileSync } from 'node:fs'
import converter from 'openapi-to-postmanv2'

const [baseUrl, key] = process.argv.slice(2)
const data = readFileSync('openapi.json', 'utf8')
const options = { enableOptionalParameters: false }
const { promise, resolve } = Promise.withResolvers()
converter.convert({ type: 'string', data }, options, (_error, { output }) =>
  resolve(output[0].data),
)
const requestsOf = ({ item, request }) => (item ? item.flatMap(requestsOf) : [request])
const requests = requestsOf(await promise)

const enabled = (pairs) =>
  pairs.filter(({ disabled }) => !disabled).map(({ key, value }) => [key, value])

/** Sends the only request of this method to `/pets`. */
async function send(method, body) {
  const [{ url, header }] = requests.filter(
    (request) => request.method === method && request.url.path.length === 1,
  )
  const query = new URLSearchParams(enabled(url.query))
  const headers = [...enabled(header), ['Authorization', `Bearer ${key}`]]
  const address = `${baseUrl}/${url.path.join('/')}?${query}`
  const response = await fetch(address, { method, headers, body })
  return { status: response.status, body: await response.json() }
}

const answers = []
for (const name of ['Rex', 'Bella'])
  answers.push(await send('POST', JSON.stringify({ name, categoryId: 1 })))
answers.push(await send('GET'))
console.log(JSON.stringify(answers))
