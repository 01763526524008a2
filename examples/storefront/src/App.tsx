/** The frame of every page: the header, the key, and what the address asks for. */
import { QueryClientProvider } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { AddPet } from './AddPet.tsx'
import { Catalogue } from './Catalogue.tsx'
import { KeyForm } from './KeyForm.tsx'
import { Page } from './Page.tsx'
import { PetPage } from './PetPage.tsx'
import { connect, TRPCProvider } from './petstore.ts'
import { links, useRoute } from './route.ts'

const STORED_KEY = 'petstore-key'

export function App() {
  // Kept for this tab only, until it is closed.
  const [apiKey, setApiKey] = useState(() => sessionStorage.getItem(STORED_KEY) ?? '')
  const [refused, setRefused] = useState(false)
  const connection = useMemo(() => connect(apiKey, () => setRefused(true)), [apiKey])

  const enter = (key: string) => {
    sessionStorage.setItem(STORED_KEY, key)
    setApiKey(key)
    setRefused(false)
  }

  return (
    <>
      <header className="top">
        <a className="brand" href={links.catalogue()}>
          <img src="/icon.svg" alt="" width="32" height="32" />
          Petstore
        </a>
        {apiKey && !refused && (
          <nav aria-label="Main">
            <button type="button" className="quiet" onClick={() => enter('')}>
              Change key
            </button>
            <a className="button" href={links.add}>
              Add an animal
            </a>
          </nav>
        )}
      </header>
      <main>
        {apiKey && !refused ? (
          <QueryClientProvider client={connection.queryClient}>
            <TRPCProvider {...connection}>
              <CurrentPage />
            </TRPCProvider>
          </QueryClientProvider>
        ) : (
          <KeyForm refused={refused ? apiKey : undefined} onEnter={enter} />
        )}
      </main>
    </>
  )
}

function CurrentPage() {
  const route = useRoute()
  switch (route.page) {
    case 'catalogue':
      return <Catalogue status={route.status} />
    case 'pet':
      return <PetPage key={String(route.id)} id={route.id} />
    case 'add':
      return <AddPet />
    case 'unknown':
      return (
        <Page title="Nothing here">
          <p>
            This address leads nowhere. <a href={links.catalogue()}>Go to the catalogue</a>
          </p>
        </Page>
      )
  }
}
