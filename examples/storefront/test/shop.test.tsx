/** The shop in front of a stand-in for the service: the service's own router, with animals in memory. */
import { petstoreHandlers } from '@petstore-catalogue/petstore/testing'
import { cleanup, configure, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { getResponse, HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { App } from '../src/App.tsx'
import { mail, telephone } from '../src/shop.ts'

configure({ asyncUtilTimeout: 10_000 }) // the machine may be busy with other tests
const url = '/trpc'
const server = setupServer()
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }))
afterAll(() => server.close())

beforeEach(() => {
  const pets = [
    { name: 'Rex', categoryId: 1 },
    { name: 'Misty', categoryId: 2 },
    { name: 'Kiwi', categoryId: 3, status: 'sold' },
  ] as const
  const apiKeys = [import.meta.env.VITE_PETSTORE_KEY, 'petstore_staff']
  server.use(...petstoreHandlers({ url, pets: [...pets], apiKeys }))
})
afterEach(() => {
  cleanup()
  server.resetHandlers()
  sessionStorage.clear()
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

function open(page: string): void {
  location.hash = page
  render(<App />)
}

/** Fills in the form for a new animal. */
async function fillIn(name: string): Promise<void> {
  sessionStorage.setItem('petstore-key', 'petstore_staff')
  open('#/add')
  fireEvent.change(await screen.findByLabelText('Name'), { target: { value: name } })
  fireEvent.change(screen.getByLabelText('Category'), { target: { value: '1' } })
}
const add = () => fireEvent.click(screen.getByRole('button', { name: 'Add to the catalogue' }))

test('a visitor sees the animals that can be had', async () => {
  open('#/')
  await screen.findByText('2 available animals in all')
  expect(screen.getByRole('link', { name: /Rex/ }).getAttribute('href')).toBe('#/pets/1')
  expect(screen.queryByText('Kiwi')).toBeNull()
  // The first page leaves the focus at its top.
  expect(document.activeElement).toBe(document.body)
})

test('a search that only a sold animal fits leads on to all animals', async () => {
  open('#/?name=kiwi')
  const link = await screen.findByRole('link', { name: 'Search all animals' })
  cleanup()
  open(link.getAttribute('href') ?? '')
  await screen.findByText('1 found among all 3 animals')
  screen.getByRole('link', { name: /Kiwi/ })
})

test('another status keeps the name and the kind', () => {
  open('#/?name=e&kind=1')
  fireEvent.click(screen.getByRole('radio', { name: 'Sold' }))
  expect(location.hash).toBe('#/?status=sold&name=e&kind=1')
})

test('all statuses and all kinds can be chosen again', async () => {
  open('#/?status=sold&kind=3')
  await screen.findByText('1 found among all 1 sold animal')
  fireEvent.change(screen.getByLabelText('Kind'), { target: { value: '' } })
  await screen.findByText('1 sold animal in all')
  expect(location.hash).toBe('#/?status=sold')
  fireEvent.click(screen.getByRole('radio', { name: 'All' }))
  expect(location.hash).toBe('#/?status=all')
})

test('spaces are no search, and a search ignores those around it', async () => {
  open('#/?name=%20')
  await screen.findByText('2 available animals in all')
  cleanup()
  open('#/?name=%20rex%20')
  await screen.findByText('1 found among all 2 available animals')
})

test('the page of a sold animal has its number, and another question', async () => {
  open('#/pets/3')
  await screen.findByRole('heading', { name: 'Looking for one like this?' })
  screen.getByText('No. 3')
})

test('a name of more than 40 characters is shortened in a sentence', async () => {
  const names = ['🐕'.repeat(40), '🐕'.repeat(41)]
  server.use(...petstoreHandlers({ url, pets: names.map((name) => ({ name, categoryId: 1 })) }))
  open('#/pets/1')
  await screen.findByText(`${names[0]} is looking for a home.`)
  cleanup()
  open('#/pets/2')
  await screen.findByText(`${'🐕'.repeat(39)}… is looking for a home.`)
})

/** Lets the service answer every call with this status, and the message `No`; returns the calls. */
function refuseAll(status: number): Request[] {
  const requests: Request[] = []
  const error = `[{"message":1,"code":2,"data":3},"No",-1,{"code":4,"httpStatus":5},"X",${status}]`
  const answer = ({ request }: { request: Request }) => {
    requests.push(request)
    return HttpResponse.json({ error }, { status })
  }
  server.use(http.get(`${url}/*`, answer), http.post(`${url}/*`, answer))
  return requests
}

test('an error that is not temporary is shown, and the call is not repeated', async () => {
  const requests = refuseAll(400)
  open('#/')
  await screen.findByText('That did not work: No')
  expect(screen.queryByText(/cannot be reached/)).toBeNull()
  expect(requests).toHaveLength(1)
  cleanup()
  await fillIn('Bella')
  add()
  await screen.findByText('That did not work: No', { selector: 'form *' })
})

test.each([429, 500, 503])('status %i is temporary', async (status) => {
  refuseAll(status)
  open('#/')
  await screen.findByText(/cannot be reached/)
  expect(screen.queryByText(/did not work/)).toBeNull()
  cleanup()
  await fillIn('Bella')
  add()
  await screen.findByText(/nothing is lost/)
})

test('the catalogue recovers from a lost connection by itself', async () => {
  server.use(http.get(`${url}/*`, () => HttpResponse.error(), { once: true }))
  open('#/')
  await screen.findByText(/cannot be reached/)
  await screen.findByText('2 available animals in all')
  expect(screen.queryByText(/cannot be reached/)).toBeNull()
})

test('a busy page, which hears of two scrolls at once, loads more animals', async () => {
  const pets = Array.from({ length: 60 }, (_, index) => ({ name: `${index}`, categoryId: 1 }))
  server.use(...petstoreHandlers({ url, pets }))
  const [far, near] = [false, true].map((isIntersecting) => ({ isIntersecting }))
  class BusyObserver {
    readonly observe: () => void
    constructor(hear: (entries: unknown[]) => void) {
      this.observe = () => void setTimeout(() => hear([far, near]))
    }
    disconnect() {}
  }
  vi.stubGlobal('IntersectionObserver', BusyObserver)
  open('#/')
  await screen.findByText('60 available animals in all')
})

test('the page of an animal that is missing does not show the next one', async () => {
  open('#/pets/0')
  await screen.findByText('There is no animal with the number 0.')
})

test('how to reach the shop is said on every page, but not to staff', async () => {
  open('#/')
  const link = screen.getByRole('link', { name: telephone })
  expect(link.getAttribute('href')).toBe('tel:+15550100')
  screen.getByRole('link', { name: mail })
  cleanup()
  await fillIn('Bella')
  expect(screen.queryByRole('link', { name: mail })).toBeNull()
})

test('the length of a name is its characters, and the form has no link to itself', async () => {
  await fillIn('🐕🐕')
  screen.getByText('2 of 255')
  expect(screen.queryByRole('link', { name: 'Add an animal' })).toBeNull()
})

test('the button of the form cannot be used while the animal is added', async () => {
  await fillIn('Bella')
  const { promise, resolve } = Promise.withResolvers<void>()
  server.use(http.post(`${url}/createPet`, () => promise, { once: true }))
  add()
  const button = await screen.findByRole('button', { name: 'Adding…' })
  expect(button.hasAttribute('disabled')).toBe(true)
  resolve()
  await waitFor(() => expect(location.hash).toBe('#/pets/4'))
})

test('a request without an answer ends with a message, in the form, too', async () => {
  const timeouts: AbortController[] = []
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    const timeout = new AbortController()
    timeouts.push(timeout)
    return timeout.signal
  })
  const never = () => new Promise<never>(() => {})
  server.use(http.get(`${url}/*`, never), http.post(`${url}/*`, never))
  open('#/')
  await waitFor(() => expect(timeouts).toHaveLength(1))
  timeouts[0]?.abort()
  await screen.findByText(/cannot be reached/)
  cleanup()
  await fillIn('Bella')
  add()
  await screen.findByRole('button', { name: 'Adding…' })
  for (const timeout of timeouts) timeout.abort()
  await screen.findByText(/nothing is added twice/)
})

test('what the service refuses is said at its field', async () => {
  await fillIn('x'.repeat(256))
  add()
  await screen.findByText('The name must have at most 255 characters')
})

/** Enters a key into the form for it. */
async function enter(key: string, button: string): Promise<void> {
  fireEvent.change(await screen.findByLabelText('Your key'), { target: { value: key } })
  fireEvent.click(screen.getByRole('button', { name: button }))
}

test('a key that may only read is not one of staff', async () => {
  open('#/staff')
  await enter(import.meta.env.VITE_PETSTORE_KEY, 'Enter')
  await screen.findByText('This key may look, but not add animals.')
})

test('a shop whose own key is refused is closed to visitors, and open to staff', async () => {
  server.use(...petstoreHandlers({ url, apiKeys: ['petstore_staff'] }))
  open('#/')
  await screen.findByText('Our catalogue is closed to visitors at the moment.')
  await enter('petstore_staff', 'Open the catalogue')
  await screen.findByRole('link', { name: 'Add an animal' })
})

test('a shop without a key asks for one, and offers nothing that this key may not do', async () => {
  vi.stubEnv('VITE_PETSTORE_KEY', '')
  vi.resetModules()
  const { App: KeylessShop } = await import('../src/App.tsx')
  location.hash = '#/'
  render(<KeylessShop />)
  screen.getByRole('heading', { name: 'Welcome to Petstore' })
  await enter('petstore_read_shop', 'Open the catalogue')
  await screen.findByText('2 available animals in all')
  expect(screen.queryByRole('link', { name: 'Add an animal' })).toBeNull()
})

test('a key that the service refuses at the form is asked for again', async () => {
  await fillIn('Bella')
  server.use(...petstoreHandlers({ url, apiKeys: [import.meta.env.VITE_PETSTORE_KEY] }))
  add()
  await screen.findByText(/does not know this key/)
})

test('a key must have the characters of a key, and spaces around it are removed', async () => {
  open('#/staff')
  const field = screen.getByLabelText<HTMLInputElement>('Your key')
  const isValid = (value: string) => {
    fireEvent.change(field, { target: { value } })
    return field.checkValidity()
  }
  expect(['', 'schlüssel', 'two words'].map(isValid)).toEqual([false, false, false])
  expect(isValid(' petstore_staff ')).toBe(true)
  fireEvent.click(screen.getByRole('button', { name: 'Enter' }))
  await waitFor(() => expect(sessionStorage.getItem('petstore-key')).toBe('petstore_staff'))
})

test('a key that cannot be checked now is accepted', async () => {
  server.use(http.get(`${url}/*`, () => HttpResponse.error()))
  open('#/staff')
  fireEvent.change(screen.getByLabelText('Your key'), { target: { value: 'petstore_staff' } })
  fireEvent.click(screen.getByRole('button', { name: 'Enter' }))
  await waitFor(() => expect(sessionStorage.getItem('petstore-key')).toBe('petstore_staff'))
})

test('the name of the shop leads from the form for a refused key to the catalogue', async () => {
  sessionStorage.setItem('petstore-key', 'petstore_revoked')
  open('#/')
  await screen.findByText(/does not know this key/)
  fireEvent.click(screen.getByRole('link', { name: 'Petstore' }))
  await screen.findByText('2 available animals in all')
})

test('after a lost answer the same animal is added once, and another one as well', async () => {
  const standIn = petstoreHandlers({ url, pets: [] })
  const loseAnswer = () =>
    server.use(
      http.post(
        `${url}/createPet`,
        async ({ request }) => {
          await getResponse(standIn, request)
          return HttpResponse.error()
        },
        { once: true },
      ),
    )
  server.use(...standIn)
  loseAnswer()
  await fillIn('Bella')
  add()
  await screen.findByText(/nothing is lost/)
  add()
  await waitFor(() => expect(location.hash).toBe('#/pets/1')) // a second animal would be 2
  cleanup()
  loseAnswer()
  await fillIn('Bella')
  add()
  await screen.findByText(/nothing is added twice/)
  fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'Rex' } })
  add()
  await waitFor(() => expect(location.hash).toBe('#/pets/3'))
})
