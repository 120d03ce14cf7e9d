import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.UnsafeBuffer;
import sun.misc.Signal;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32;

/**
 * A request and response service: it sends each request back as it is.
 *
 * It executes each request once, and in order. The last one that it has executed is in a file.
 * After a restart, it answers this one again, since its answer may be lost, and continues with the
 * next. So it does with a request that the client sends again.
 *
 * Channels and the name of that file come from the environment, and AERON_DIR names the driver. The
 * lines `WT GOT` and `WT SENT` report to Windtunnel what this program has received and sent.
 */
public final class Service
{
    private static final int REQUESTS = 1001;
    private static final int RESPONSES = 1002;
    private static final int FRAGMENTS_MAX = 10;
    private static final long IDLE_NS = 500_000;
    private static final long SEND_TIMEOUT_NS = 20_000_000_000L;

    private final Path state = Path.of(System.getenv("EXECUTED"));
    private final Publication responses;
    private int executed;

    private Service(final Publication responses)
    {
        this.responses = responses;
    }

    public static void main(final String[] args) throws Exception
    {
        final AtomicBoolean running = new AtomicBoolean(true);
        Signal.handle(new Signal("TERM"), (signal) -> running.set(false));
        final Aeron.Context context =
            new Aeron.Context().aeronDirectoryName(System.getenv("AERON_DIR"));
        try (Aeron aeron = Aeron.connect(context);
            Publication responses = aeron.addPublication(System.getenv("RESPONSES"), RESPONSES);
            Subscription requests = aeron.addSubscription(System.getenv("REQUESTS"), REQUESTS))
        {
            new Service(responses).run(requests, running);
        }
    }

    private void run(final Subscription requests, final AtomicBoolean running) throws Exception
    {
        final FragmentHandler take = (buffer, offset, length, header) ->
        {
            final byte[] request = new byte[length];
            buffer.getBytes(offset, request);
            take(request);
        };
        final byte[] last = Files.exists(state) ? Files.readAllBytes(state) : new byte[0];
        executed = last.length > 0 ? numberOf(last) + 1 : 0;
        System.out.println("service ready");
        if (last.length > 0)
        {
            send(last);
        }
        while (running.get())
        {
            if (requests.poll(take, FRAGMENTS_MAX) == 0)
            {
                LockSupport.parkNanos(IDLE_NS);
            }
        }
        System.out.println("service executed " + executed + " requests");
    }

    private void take(final byte[] request)
    {
        final int number = numberOf(request);
        if (number == executed)
        {
            execute(number, request);
        }
        else if (number < executed)
        {
            System.out.println("service: request " + number + " again");
            send(request);
        }
        // Otherwise one before it is missing, and the client sends both again.
    }

    private void execute(final int number, final byte[] request)
    {
        System.out.println("WT GOT requests " + number + " " + checksum(request));
        send(request);
        executed = number + 1;
        try
        {
            // A file that is replaced is never half written.
            final Path written = Path.of(state + ".new");
            Files.write(written, request);
            Files.move(written, state, StandardCopyOption.ATOMIC_MOVE);
        }
        catch (final java.io.IOException ex)
        {
            throw new java.io.UncheckedIOException(ex);
        }
        System.out.println("WT SENT responses " + number + " " + checksum(request));
    }

    /** Offer a message until the driver accepts it. */
    private void send(final byte[] message)
    {
        final long deadlineNs = System.nanoTime() + SEND_TIMEOUT_NS;
        while (responses.offer(new UnsafeBuffer(message)) < 0)
        {
            if (System.nanoTime() > deadlineNs)
            {
                System.err.println("service: no response was accepted for 20 s");
                System.exit(1);
            }
            LockSupport.parkNanos(IDLE_NS);
        }
    }

    private static int numberOf(final byte[] message)
    {
        return Integer.parseInt(new String(message, StandardCharsets.US_ASCII).split(" ")[1]);
    }

    private static long checksum(final byte[] message)
    {
        final CRC32 crc = new CRC32();
        crc.update(message);
        return crc.getValue();
    }
}
